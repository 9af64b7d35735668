"""Check that the tests notice mistakes: change one line of the library at a time and run the tests that should fail.

Each entry of `mutants.toml` is one mutant: a file, a piece of its text, a wrong replacement, and the tests that must
notice it. The script works on a copy of the sources, so that the repository is never changed. It exits with 1 if a
mutant survives, if its text is not found exactly once, or if the tests fail without any mutant.

Run it with `make mutants`. Words after the command choose the mutants whose file or reason contains one of them:

    python tests/mutation/check.py holm ema
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = Path(__file__).with_name("mutants.toml")
WORKERS = 2
SECONDS = 600
PASSED, FAILED = 0, 1  # pytest's exit codes; every other code means that the tests could not run


@dataclass(frozen=True)
class Mutant:
    """One deliberate mistake.

    Attributes:
        file: The path of the changed file, from the root of the repository.
        text: The text to replace; it must occur exactly once in the file.
        replacement: The wrong text.
        tests: The tests that must fail, as pytest takes them.
        why: What is wrong about the replacement.
    """

    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    why: str

    def changed(self, source: str) -> str:
        """Return the source with the mistake in it."""
        if (count := source.count(self.text)) != 1:
            raise LookupError(f"{self.file}: expected the text {self.text!r} once, found it {count} times.")
        return source.replace(self.text, self.replacement)


def load() -> list[Mutant]:
    """Return all mutants of `mutants.toml`."""
    entries = tomllib.loads(MUTANTS.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def copy_of_the_sources(folder: Path) -> Path:
    """Copy `src` into the folder, without compiled files, and return the copy."""
    return Path(shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__")))


def run(command: list[str], sources: Path) -> subprocess.CompletedProcess[str]:
    """Run Python on the copied sources instead of the installed ones."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(sources),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    call = [sys.executable, *command]
    return subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def run_tests(tests: tuple[str, ...], sources: Path) -> subprocess.CompletedProcess[str]:
    """Run these tests and stop at the first failure."""
    return run(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests], sources)


def problem_without_mutants(mutants: list[Mutant]) -> str | None:
    """Return what is wrong before any mutant is made: other sources are imported, or a test fails anyway."""
    with tempfile.TemporaryDirectory() as folder:
        sources = copy_of_the_sources(Path(folder))
        found = run(["-c", "import postmax; print(postmax.__file__)"], sources).stdout.strip()
        if not found.startswith(str(sources)):
            return f"the tests would import {found or 'nothing'} and not the copy in {sources}."
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        result = run_tests(tests, sources)
        return None if result.returncode == PASSED else f"the tests fail without a mutant:\n{result.stdout[-3000:]}"


def problem_with(mutant: Mutant) -> str | None:
    """Return None if the tests notice the mutant, otherwise what happened."""
    with tempfile.TemporaryDirectory() as folder:
        sources = copy_of_the_sources(Path(folder))
        path = sources.parent / mutant.file
        try:
            path.write_text(mutant.changed(path.read_text(encoding="utf-8")), encoding="utf-8")
        except (OSError, LookupError) as error:
            return str(error)
        result = run_tests(mutant.tests, sources)
    if result.returncode == FAILED:
        return None
    if result.returncode == PASSED:
        return f"survived: {', '.join(mutant.tests)} passed."
    shown = result.stdout[-2000:] + result.stderr[-1000:]
    return f"the tests did not run (pytest exit code {result.returncode}):\n{shown}"


def main(words: list[str]) -> int:
    """Check the chosen mutants and print one line for each."""
    mutants = [m for m in load() if not words or any(w.lower() in f"{m.file} {m.why}".lower() for w in words)]
    if not mutants:
        print(f"no mutant contains one of the words: {' '.join(words)}")
        return 1
    if (problem := problem_without_mutants(mutants)) is not None:
        print(problem)
        return 1
    missed = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        for mutant, problem in zip(mutants, pool.map(problem_with, mutants), strict=True):
            missed += problem is not None
            print(f"{'caught' if problem is None else 'MISSED':<7} {mutant.file}: {mutant.why}", flush=True)
            if problem is not None:
                print(f"        {problem}")
    print(f"{len(mutants) - missed} of {len(mutants)} mutants were noticed.")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
