"""Rules for all tests: their own data folder, one thread, and the tiers of the tests.

The tiers are chosen by `make test-fast`, `make test` and `make test-all`; CONTRIBUTING.md explains them.

- A test marked `slow` runs in `make test-all` only.
- A test marked `thorough` does not run in `make test-fast`. Tests in `WHOLE_PROGRAMS` (folders and files), and tests
  that kill processes (fixture `forks`), have this mark without saying so.
- `--sample N` keeps N cases of every parametrised test function, spread evenly over its cases. `make test-fast` uses
  it: every test function runs, but not with all of its parameters.
"""

import signal
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from postmax.sweep.cores import cores

TESTS = Path(__file__).parent
collect_ignore = ["plugin_package"]  # looking for doctests would import the plugin, which registers names
WHOLE_PROGRAMS = ("cli", "examples", "report", "sweep", "test_plugins.py", "test_recipes.py")


def pytest_addoption(parser):
    parser.addoption(
        "--sample",
        type=int,
        metavar="N",
        help="run at most N cases of every parametrised test function (default: all of them)",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """`-n auto`: a process for each core that we may use, up to eight. Each takes the memory of a copy of torch."""
    return min(cores(), 8)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests of whole programs, and keep N cases of every test function."""
    for item in items:
        programs = any(item.path.is_relative_to(TESTS / folder) for folder in WHOLE_PROGRAMS)
        if programs or "forks" in getattr(item, "fixturenames", ()):
            item.add_marker("thorough")
    if (most := config.getoption("--sample")) is None:
        return
    if most < 1:
        raise pytest.UsageError(f"--sample needs a number of at least 1, got {most}.")
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    kept = {item for cases in functions.values() for item in spread(cases, most)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def spread(cases, most):
    """Return at most so many of the cases, at even distances, the first one included."""
    return cases if len(cases) <= most else [cases[i * len(cases) // most] for i in range(most)]


@pytest.fixture(autouse=True)
def _own_data_folder(monkeypatch, tmp_path_factory):
    """Tests neither read nor write the data sets and estimates of the person who runs them."""
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture(autouse=True, scope="session")
def _own_data_folder_for_the_session(tmp_path_factory):
    # Fixtures of a session or a module start processes before the fixture of a test above exists.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSTMAX_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        yield


@pytest.fixture(autouse=True)
def _ctrl_c_is_not_ignored():
    """Where the tests run in the background, their shell has told everybody to ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _one_thread():
    """Sums depend on how they are divided among threads, and small tensors are fastest on one thread.

    A test that sets another number must not change the tests after it.
    """
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def bf16():
    """Skip the test where the CPU cannot compute in bfloat16."""
    from postmax.train.precision import bf16_on_cpu  # noqa: PLC0415 (imports half of the library)

    if (reason := bf16_on_cpu().reason) is not None:
        pytest.skip(f"bfloat16 {reason} on this CPU")


@pytest.fixture(scope="session")
def forks():
    """A process that has imported everything and forks for each run that is to be killed."""
    from forked_runs import ForkServer  # noqa: PLC0415 (imports half of the library)

    with ForkServer() as server:
        yield server
