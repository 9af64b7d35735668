"""The list of mutants is up to date: each text is found once, and each test file exists."""

import pytest
from mutation.check import ROOT, load


@pytest.mark.parametrize("mutant", load(), ids=lambda mutant: mutant.why[:60])
def test_text_is_found_and_tests_exist(mutant):
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.changed(source) != source
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        assert (ROOT / path).is_file(), path
        for name in names:
            assert f"def {name.split('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), name
