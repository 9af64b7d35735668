"""The choice of rows that are probably labelled right."""

import pytest
import torch

from postmax.methods.parts.clean_rows import smallest, smallest_of_each_class


@pytest.mark.parametrize(("left_out", "rows", "kept"), [(0.8, 10, 2), (0.9, 10, 1), (0.36, 100, 64), (0.95, 10, 1)])
def test_a_share_is_not_rounded_down_by_floating_point(left_out, rows, kept):
    """(1 − 0.8) · 10 is a little less than 2. The share of which less than one row would be left keeps one."""
    assert len(smallest(torch.arange(float(rows)), 1 - left_out)) == kept


@pytest.mark.parametrize("classes", [1, 3, 1000])
def test_the_smallest_of_each_class_do_not_depend_on_the_order_of_rows(classes):
    """Equal losses are taken in the order of the rows; a class without rows takes nothing."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(max(1, classes - 1), (300,), generator=generator)
    losses = torch.randint(5, (300,), generator=generator).float()
    found = smallest_of_each_class(losses, labels, 0.4, classes)
    count = -(-2 * 300 // (5 * classes))
    for label in range(classes):
        mine = sorted((losses[row].item(), row) for row in range(300) if labels[row] == label)
        assert found[labels == label].sum() == min(count, len(mine))
        assert all(found[row] for _, row in mine[:count])
