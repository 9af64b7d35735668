"""docs/losses.md says what the registry says about the losses that it lists."""

import losses_page
import pytest

import postmax as pm

PAGE = losses_page.PAGE.read_text()
LISTED = losses_page.listed(PAGE)


def test_page_is_what_the_registry_says():
    # A loss that was added since then is not on the page yet, which is no error.
    assert losses_page.rewrite(PAGE, LISTED) == PAGE, "run python benchmarks/losses_page.py"
    assert len(LISTED) > 40


def test_every_loss_has_a_picture():
    drawn = losses_page.families()
    assert sorted(name for names in drawn.values() for name in names) == list(losses_page.NAMES)
    for family in drawn:
        assert f"losses-{family}.png" in PAGE


@pytest.mark.parametrize("name", LISTED)
def test_every_source_with_a_year_is_found_in_full(name):
    source = pm.losses.describe(name).source
    assert not source[-4:].isdigit() or len(losses_page.paper(source)) > 40


def test_losses_that_change_during_training():
    changing = losses_page.changing(losses_page.NAMES)
    assert {"cores", "dmi", "peer", "rda"} <= set(changing)
    assert not {"ce", "gce", "fpml"} & set(changing)


def test_curves_of_cross_entropy():
    p, value, in_logit, in_p = losses_page.curves("ce")
    assert (value + p.log()).abs().max() < 1e-12
    assert (in_logit - (1 - p)).abs().max() < 1e-12
    assert (in_p - 1 / p).abs().max() < 1e-9
