"""docs/methods.md says what the catalogue says about every method, and shows the costs that were measured."""

import methods_page
import pytest

from postmax import methods

PAGE = methods_page.PAGE.read_text()


def test_page_is_what_the_catalogue_says():
    expected = methods_page.rewrite(PAGE, methods_page.names(), methods_page.costs())
    assert expected == PAGE, "run python benchmarks/methods_page.py, or benchmarks/methods_cost.py for a new method"


def test_every_cost_belongs_to_a_method():
    assert set(methods_page.costs()) <= set(methods.names())


@pytest.mark.parametrize("method", methods.names())
def test_every_option_is_explained(method):
    entry = methods.describe(method)
    for option in set(entry.options) - {"preset"}:
        assert methods_page.meaning(entry, option).endswith("."), f"say under Args what {option} is"


def test_an_option_that_is_explained_elsewhere():
    entry = methods.describe("dual-t")
    assert methods_page.meaning(entry, "estimation_epochs").endswith("by default half of the training.")


def test_a_method_that_was_not_measured_yet():
    line = next(line for line in methods_page.table(["elr"], {}) if line.startswith("| [`elr`]"))
    assert line.count(methods_page.UNKNOWN) >= 4
