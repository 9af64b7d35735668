"""Advice speaks to a programmer, or to a person at the command line."""

import threading

import pytest

from postmax.wording import advice, command_line


def said():
    return advice(python="label=", command="--label")


def test_a_program_is_told_about_arguments():
    assert said() == "label="


def test_a_command_is_told_about_options_in_every_thread():
    heard = []
    with command_line():
        thread = threading.Thread(target=lambda: heard.append(said()))
        thread.start()
        thread.join()
    assert heard == ["--label"]


def test_the_words_of_the_command_end_with_it():
    with pytest.raises(KeyError), command_line(), command_line():
        raise KeyError
    assert said() == "label="
