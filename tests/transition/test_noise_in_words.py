"""Noise as a command line has it."""

import numpy as np
import pytest
import torch

from postmax import Transition
from postmax.errors import DataError, InputError
from postmax.transition import kinds, parse_noise, read_matrix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", Transition.identity(10)),
        ("symmetric:0.4", Transition.symmetric(10, 0.4)),
        ("Symmetric-Inclusive:0.4", Transition.symmetric(10, 0.4, include_true_class=True)),
        ("pair:0.45", Transition.pair(10, 0.45)),
        ("uniform:low", Transition.uniform_off_diagonal("low")),
        ("uniform: .05,.07,.04,.05,.06,.04,.06,.07,.08,.07", Transition.uniform_off_diagonal("high")),
        ("asymmetric-cifar10:0.3", Transition.asymmetric("cifar10", 0.3)),
    ],
)
def test_words_and_constructors_agree(text, expected):
    assert parse_noise(text, 10) == expected


def test_other_numbers_of_classes():
    assert parse_noise("binary:0.1,0.3", 2) == Transition.binary(0.1, 0.3)
    assert parse_noise("asymmetric-cifar100:0.2", 100) == Transition.asymmetric("cifar100", 0.2)
    superclass = Transition.asymmetric("cifar100-superclass", 0.2)
    assert parse_noise("asymmetric-cifar100-superclass:0.2", 100) == superclass


def test_every_kind_that_is_listed_is_understood():
    parameters = {"ETA": "0.1", "E0,E1,…": ",".join(["0.01"] * 10), "E0,E1": "0.1,0.2"}
    for listed in kinds():
        name, _, parameter = listed.partition(":")
        k = {"binary": 2, "asymmetric-cifar100": 100, "asymmetric-cifar100-superclass": 100}.get(name, 10)
        assert parse_noise(f"{name}:{parameters.get(parameter, parameter)}", k).num_classes == k


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("symetric:0.4", "Did you mean 'symmetric'"),
        ("symmetric", "symmetric needs a rate after a colon, such as symmetric:0.1"),
        ("symmetric:a lot", "needs a rate"),
        ("symmetric:0.1,0.2", "needs a rate"),
        ("symmetric:1.4", r"must lie in \[0, 1\]"),
        ("symmetric:nan", r"must lie in \[0, 1\]"),
        ("binary:0.1", "binary needs 2 rates"),
        ("binary:0.1,0.2", "is for 2 classes, but the labels have 10"),
        ("uniform:medium", "Known: high, low"),
        ("uniform:", "uniform needs its rates"),
        ("", "unknown kind of noise ''"),
        ("absent.csv", "does not exist"),
        ("absent.npy", "does not exist"),
        ("absent.json", "does not exist"),
    ],
)
def test_what_is_not_understood_says_what_would_be(text, message):
    with pytest.raises(InputError, match=message):
        parse_noise(text, 10)


def test_a_matrix_from_a_file(tmp_path):
    expected = Transition.binary(0.2, 0.1)
    np.save(tmp_path / "m.npy", expected.matrix.numpy())
    np.savetxt(tmp_path / "m.csv", expected.matrix.numpy(), delimiter=",")
    for name in ("m.npy", "m.csv"):
        assert read_matrix(tmp_path / name) == expected
        assert parse_noise(str(tmp_path / name), 2).definition == f"the matrix in {name}"


@pytest.mark.parametrize("content", ["", "a,b\nc,d\n", "0.5,0.5\n", "1,2\n3,4\n", "1,0\n0\n"])
def test_a_bad_matrix_file_is_named(tmp_path, content):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=r"bad\.csv"):
        read_matrix(path)


def test_definitions_tell_what_was_asked_for():
    assert Transition(torch.eye(3)).definition == "a matrix, K=3"
    assert Transition(Transition.pair(3, 0.1)).definition == "pair flip, eta=0.1, K=3"
    assert Transition.asymmetric("cifar10", 0.4).definition == "asymmetric cifar10, eta=0.4"
