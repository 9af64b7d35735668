"""The help texts: every command has one, and none of them imports torch."""

import json
import subprocess
import sys

import pytest

from postmax.cli.app import app
from postmax.cli.commands.listing import KINDS
from postmax.cli.listing import _KINDS

HEAVY = ("torch", "numpy", "rich.progress", "yaml", "matplotlib", "lightning_fabric", "scipy", "sklearn", "pyarrow")
PROGRAM = """
import json, sys
from postmax.cli import main
try:
    main(sys.argv[2:])
except SystemExit as stop:
    pass
print(json.dumps([name for name in sys.argv[1].split(",") if name in sys.modules]))
"""


def commands():
    """The words of all commands, such as `noise estimate`."""
    single = [(command.name or command.callback.__name__,) for command in app.registered_commands]
    groups = [
        (group.name, command.name or command.callback.__name__)
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ]
    return [(), *single, *[(group.name,) for group in app.registered_groups], *groups]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_a_help_text_imports_nothing_that_takes_long(words):
    command = [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *text, imported = done.stdout.strip().splitlines()
    assert json.loads(imported) == []
    assert text[0].startswith("Usage: postmax") or text[1].strip().startswith("Usage: postmax")


def test_the_version_and_no_words_import_nothing_either():
    for words in (["--version"], []):
        command = [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout.splitlines()[-1]) == []
        assert "postmax" in done.stdout + done.stderr


def test_importing_the_package_imports_nothing():
    code = f"import json, sys, postmax; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_public_name_is_loaded_when_it_is_used():
    code = """
import postmax
for name in sorted({*postmax.__all__, *postmax._MODULES}):
    assert name in dir(postmax)
    getattr(postmax, name)
try:
    postmax.no_such_name
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "module 'postmax' has no attribute 'no_such_name'\n"


def test_the_kinds_in_the_help_are_those_that_can_be_listed():
    assert tuple(_KINDS) == KINDS
