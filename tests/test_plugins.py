"""Plugins: a real package that is installed, modules that are named, broken plugins, and names that are taken."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from postmax import plugins
from postmax.cli import main
from postmax.cli.imports import load_plugins, split_imports
from postmax.errors import InputError
from postmax.registry import Registry

PACKAGE = Path(__file__).parent / "plugin_package"
SOURCES = Path(__file__).parent.parent / "src"


def environment(*folders, **more):
    """Variables under which Python finds these folders before everything else."""
    path = os.pathsep.join(map(str, (*folders, SOURCES)))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def postmax(*arguments, folders=(), cwd=None, **more):
    command = [sys.executable, "-c", "from postmax.cli import main; main()", *map(str, arguments)]
    env = environment(*folders, **more)
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)


def python(code, *folders, cwd=None):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(*folders),
        check=True,
    )
    return done.stdout.strip(), done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which pip installed the package, without a network."""
    source = shutil.copytree(PACKAGE, tmp_path_factory.mktemp("source") / "package")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", target, source], check=True, capture_output=True)
    return target


def write_plugin(folder, name, module, code):
    """What pip leaves behind when it installs a package with one module and one entry point."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(textwrap.dedent(code), encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-0.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.5\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[postmax.plugins]\n{name} = {module}\n", encoding="utf-8")
    return folder


# What a run remembers


def test_a_run_remembers_its_plugins_and_says_which_are_missing(installed, tmp_path):
    mine = tmp_path / "away" / "my_loss.py"
    mine.parent.mkdir()
    mine.write_text("from postmax import losses\nlosses.register('mine', lambda: losses.get('ce').term, 'mine')\n")
    train = ("train", "two-moons", "loss=mine", "epochs=1", "--json", "-o", tmp_path / "out")
    done = postmax("--import", mine, *train, folders=[installed])
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    described = "postmax_example_plugin (postmax-example-plugin 1.2.3), my_loss.py"
    assert result["environment"]["plugins"] == described
    folder = Path(result["folder"])
    assert json.loads((folder / "environment.json").read_text())["plugins"] == described
    done = postmax("resume", folder, "--restart", folders=[installed])
    assert done.returncode == 2
    assert "unknown loss 'mine'" in done.stderr
    assert "plugins that are not loaded now: my_loss.py. Add --import my_loss.py" in done.stderr
    again = postmax("train", "--config", folder / "config.yaml", "-o", tmp_path)
    assert again.returncode == 2
    assert "Add --import postmax_example_plugin --import my_loss.py" in again.stderr


# An installed package


def test_an_installed_package_is_listed(installed):
    done = postmax("list", "--json", folders=[installed])
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["divergences"]["three-halves"] == "f(u) = u^1.5, which is strictly convex."
    assert found["losses"]["three-halves-pml"] == "f-PML with a divergence of a plugin"
    assert found["models"]["plugin-linear"] == "a linear model of a plugin, for tests"
    assert "two-moons" in found["datasets"]
    assert found["estimators"]["keeps-labels"] == "An estimator that finds no noise."
    assert found["methods"]["patient"] == "train on half of each batch, for tests"
    assert found["tables"]["moons"] == "Two moons, by a plugin"
    assert found["plugins"] == {"example": "postmax_example_plugin of postmax-example-plugin 1.2.3"}


def test_what_a_package_registers_is_trained(installed, tmp_path):
    done = postmax(
        *("train", "two-moons", "loss=three-halves-pml", "model=plugin-linear", "method=patient"),
        *("method.share=0.8", "epochs=5", "--json", "-o", tmp_path),
        folders=[installed],
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["classes"] == ["upper", "lower"]
    assert result["train_rows"] == 200
    assert result["seeds"][0]["readings"]["model"]["last"]["accuracy"] > 0.6


def test_the_processes_of_a_sweep_know_the_package(installed, tmp_path):
    done = postmax("reproduce", "moons", "-w", "2", "--json", "-o", tmp_path, folders=[installed])
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["tables"][0]["panels"][0]["cells"]
    assert cell["n"] == 2


def test_an_estimator_of_a_package_is_used(installed, tmp_path):
    (tmp_path / "rows.csv").write_text("x,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(40)))
    done = postmax(
        "noise", "estimate", "rows.csv", "--method", "keeps-labels", "--json", folders=[installed], cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["matrix"] == [[1.0, 0.0], [0.0, 1.0]]


def test_a_program_finds_plugins_when_it_asks_for_a_name(installed):
    """And not when it imports postmax, which stays light."""
    code = """
        import sys
        import postmax as pm
        from postmax import plugins
        print("postmax_example_plugin" in sys.modules, plugins.loaded())
        pm.FPMLLoss("kl")
        print("postmax_example_plugin" in sys.modules)
        print(pm.FPMLLoss("Three Halves").objective.divergence.name, plugins.loaded())
        print(pm.models.get("plugin-linear", num_classes=2, input_shape=(3,)).fc.out_features)
    """
    out, _ = python(code, installed)
    assert out.splitlines() == [
        "False ()",
        "False",
        "three-halves ('postmax_example_plugin',)",
        "2",
    ]


def test_another_process_loads_what_this_one_has(installed):
    code = "from postmax import plugins; plugins.load(['postmax_example_plugin']); import postmax; "
    code += "print(postmax.data.load('two-moons', split='test').inputs.shape, plugins.loaded())"
    out, _ = python(code, installed)
    assert out == "torch.Size([50, 2]) ('postmax_example_plugin',)"


# Modules that the user names


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder; what is imported in the test is forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(plugins, "_imported", [])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("how", ["--import my_plugin", "--import=my_plugin", "--import my_plugin.py", "POSTMAX_IMPORT"])
def test_a_module_of_this_folder_is_imported(here, monkeypatch, how):
    (here / "my_plugin.py").write_text("value = 3")
    arguments = how.split()
    if how == "POSTMAX_IMPORT":
        monkeypatch.setenv("POSTMAX_IMPORT", " my_plugin ,")
        arguments = []
    assert load_plugins(["list", *arguments, "models"]) == ["list", "models"]
    assert sys.modules["my_plugin"].value == 3
    assert plugins.loaded() == ((str(here / "my_plugin.py") if ".py" in how else "my_plugin"),)


def test_named_modules_are_listed(tmp_path):
    (tmp_path / "my_plugin.py").write_text("value = 3")
    done = postmax("--import", tmp_path / "my_plugin.py", "list", "plugins", "--json")
    assert json.loads(done.stdout) == {str(tmp_path / "my_plugin.py"): "named by --import or POSTMAX_IMPORT"}


def test_arguments_after_two_hyphens_are_left_alone():
    assert split_imports(["a", "--import", "b", "--", "--import", "c"]) == (["a", "--", "--import", "c"], ["b"])
    with pytest.raises(InputError, match="--import needs the name of a module"):
        split_imports(["list", "--import"])


def test_the_help_names_the_option(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--import MODULE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("no_such_module", None, "there is no such module"),
        ("no_such_file.py", None, "there is no such file"),
        ("needs_more", "import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("crooked", "def (", "SyntaxError"),
        ("crooked_file.py", "1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_named_module_that_cannot_be_imported_ends_the_command(here, capsys, name, code, message):
    if code is not None:
        (here / f"{name.removesuffix('.py')}.py").write_text(code)
    with pytest.raises(SystemExit) as ended:
        main(["list", "models", "--import", name])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("postmax: cannot import ")
    assert name in said
    assert message in said
    assert plugins.loaded() == ()


def test_a_file_must_not_hide_a_module(here):
    (here / "json.py").write_text("")
    with pytest.raises(InputError, match="another module is called 'json' already; rename the file"):
        plugins.load(["./json.py"])


def test_a_file_is_imported_once(here, monkeypatch):
    monkeypatch.setenv("IMPORTED", "")
    (here / "once.py").write_text("import os; os.environ['IMPORTED'] += 'x'")
    plugins.load(["once.py"])
    plugins.load(["./once.py"])
    assert os.environ["IMPORTED"] == "x"
    assert plugins.loaded() == (str(here / "once.py"),)


# Broken plugins


@pytest.fixture
def broken(tmp_path):
    return write_plugin(tmp_path / "site", "broken-plugin", "broken_module", "raise RuntimeError('it rains')")


def test_a_broken_plugin_is_a_warning_and_other_plugins_are_loaded(broken, installed, tmp_path):
    done = postmax("list", "models", "--json", folders=[broken, installed])
    assert done.returncode == 0
    assert "plugin-linear" in json.loads(done.stdout)
    warning = "postmax: warning: the plugin 'broken-plugin' of the package broken-plugin 0.5 is not loaded: "
    assert done.stderr.splitlines() == [f"{warning}RuntimeError: it rains"]


def test_the_doctor_tells_loaded_plugins_from_broken_ones(broken, installed, tmp_path):
    done = postmax("doctor", "--json", folders=[broken, installed], cwd=tmp_path)
    found = {finding["what"]: (finding["fine"], finding["detail"]) for finding in json.loads(done.stdout)}
    assert found["plugin example"] == (True, "postmax-example-plugin 1.2.3, postmax_example_plugin: loaded")
    assert found["plugin broken-plugin"] == (
        False,
        "broken-plugin 0.5, broken_module: broken: RuntimeError: it rains",
    )
    assert done.returncode == 1


def test_a_program_is_warned_once_and_gets_the_usual_error(broken):
    code = """
        import postmax as pm
        for name in ("unknown-one", "unknown-two"):
            try:
                pm.divergences.get(name)
            except pm.InputError as error:
                print(error)
    """
    out, warned = python(code, broken)
    assert out.count("unknown divergence 'unknown-") == 2
    assert warned.count("PluginWarning") == 1
    assert "broken-plugin 0.5 is not loaded: RuntimeError: it rains" in warned


# Names that are taken


TAKES = "import postmax as pm\npm.models.register('mlp', lambda shape, k: None, summary='not an MLP')"


def test_a_name_can_be_taken_once(tmp_path):
    """Not even a plugin that is loaded before the modules of postmax can take a name of theirs."""
    site = write_plugin(tmp_path / "site", "greedy-plugin", "greedy", TAKES)
    code = "import postmax as pm\npm.models.register('{}', lambda shape, k: None, summary='{}')"
    write_plugin(site, "a-plugin", "a_module", code.format("Lin_ear", "first"))
    write_plugin(site, "b-plugin", "b_module", code.format("linear", "second"))
    done = postmax("list", "models", "--json", folders=[site])
    found = json.loads(done.stdout)
    assert found["mlp"] != "not an MLP"
    assert found["Lin_ear"] == "first"
    assert "linear" not in found
    assert "greedy-plugin 0.5 is not loaded: the model name 'mlp' is taken by postmax.models.mlp" in done.stderr
    assert "b-plugin 0.5 is not loaded: the model name 'linear' is taken by a_module, so b_module" in done.stderr


def test_a_named_module_that_takes_a_name_ends_the_command(tmp_path):
    (tmp_path / "greedy.py").write_text(TAKES)
    done = postmax("list", "models", "--import", "greedy", cwd=tmp_path)
    assert done.returncode == 2
    assert "the model name 'mlp' is taken by postmax.models.mlp, so greedy cannot register it" in done.stderr


def test_a_registry_knows_who_registered_what():
    from postmax import models  # noqa: PLC0415

    known = models.catalogue._ARCHITECTURES
    assert known.owner("mlp") == "postmax.models.mlp"
    assert known.is_builtin("mlp")
    mine: Registry[int] = Registry("number")
    mine.add(1, "one")
    assert not mine.is_builtin("one")
