"""Several seeds side by side are several seeds."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file
from small_runs import estimate_of, image_archive, own_config, small_config
from torch import nn

from postmax import models
from postmax.data import Augment, Batches, Dataset, Views
from postmax.errors import InputError
from postmax.runs import execute
from postmax.train import prepare
from postmax.train.lanes import LaneBatches
from postmax.train.stacked_networks import StackedNetworks
from postmax.transition import Transition

SEEDS = (3, 0, 11)


def dataset(rows=23, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (rows,), generator=generator)
    return Dataset(f"data of {seed}", torch.randn(rows, 4, generator=generator), labels, ("a", "b"))


# Batches


@pytest.mark.parametrize("batch_size", [1, 5, 8, 23, 99])
@pytest.mark.parametrize("epoch", [0, 4])
def test_a_lane_has_the_batches_of_its_seed_alone(batch_size, epoch):
    parts = [dataset(seed=seed) for seed in SEEDS]
    stacked = LaneBatches(parts, SEEDS, batch_size)
    alone = [list(Batches(part, batch_size, seed=s).epoch(epoch)) for part, s in zip(parts, SEEDS, strict=True)]
    single = [list(LaneBatches([part], [s], batch_size).epoch(epoch)) for part, s in zip(parts, SEEDS, strict=True)]
    found = list(stacked.epoch(epoch))
    assert len(found) == len(stacked) == len(alone[0])
    for number, batch in enumerate(found):
        for lane in range(len(SEEDS)):
            for name, other in (("inputs", "inputs"), ("labels", "labels"), ("rows", "rows")):
                expected = getattr(alone[lane][number], other)
                assert torch.equal(getattr(batch, name)[lane], expected)
                assert torch.equal(getattr(single[lane][number], name)[0], expected)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize(("rows", "batch_size", "used"), [(21, 5, 20), (21, 10, 20), (22, 5, 22), (5, 1, 5), (5, 9, 5)])
def test_a_last_batch_of_one_row_is_left_out(lanes, rows, batch_size, used):
    batches = LaneBatches([dataset(rows, s) for s in range(lanes)], range(lanes), batch_size)
    for epoch in range(3):
        found = torch.cat([batch.rows for batch in batches.epoch(epoch)], 1)
        assert found.shape == (lanes, used)
        assert all(len(set(rows.tolist())) == used for rows in found)
    assert batches.used_rows == used
    assert len(batches) == math.ceil(used / batch_size)
    # Each epoch leaves out another row, so none is lost for good.
    if used < rows:
        left_out = [
            set(range(rows)) - set(torch.cat([b.rows[0] for b in batches.epoch(e)]).tolist()) for e in range(40)
        ]
        assert len(set.union(*left_out)) > 10


@pytest.mark.parametrize("lanes", [1, 2])
def test_held_out_rows_keep_their_order_and_none_is_left_out(lanes):
    parts = [dataset(21, s) for s in range(lanes)]
    batches = LaneBatches(parts, range(lanes), 5, shuffle=False)
    found = torch.cat([batch.inputs for batch in batches.epoch(0)], 1)
    for lane in range(lanes):
        assert torch.equal(found[lane], parts[lane].inputs)


def test_what_cannot_be_stacked():
    with pytest.raises(InputError, match="all have the same number of rows: start one run for each seed"):
        LaneBatches([dataset(5), dataset(6)], (0, 1), 2)
    with pytest.raises(InputError, match="on features only: for images start one run for each seed"):
        LaneBatches([dataset(), dataset()], (0, 1), 2, augment=Views(Augment()))


def test_a_run_of_images_has_one_seed(tmp_path):
    path = image_archive(tmp_path / "images.npz")
    with pytest.raises(InputError, match="for images start one run for each seed"):
        execute(own_config(path, "seeds=[0, 1]"), tmp_path / "run")


def test_batch_normalisation_has_one_seed(tmp_path):
    with pytest.raises(InputError, match="batch normalisation cannot be trained side by side: start one run for each"):
        execute(small_config("seeds=[0, 1]", "model.batch_norm=true"), tmp_path / "run")


# Networks


def networks(count, **options):
    torch.manual_seed(0)
    return [models.get("mlp", num_classes=2, input_shape=(4,), **options) for _ in range(count)]


@pytest.mark.parametrize("options", [{"hidden": (6,)}, {"hidden": ()}, {"hidden": (5, 3), "activation": "gelu"}])
def test_stacked_networks_compute_what_each_does(options):
    separate = networks(3, **options)
    lanes, inputs = StackedNetworks(separate), torch.randn(3, 7, 4)
    logits = lanes(inputs)
    for lane, network in enumerate(separate):
        torch.testing.assert_close(logits[lane], network(inputs[lane]))
        state = lanes.lane_state(lane)
        assert state.keys() == network.state_dict().keys()
        assert all(torch.equal(state[key], value) for key, value in network.state_dict().items())
    assert sum(p.numel() for p in lanes.parameters()) == sum(p.numel() for n in separate for p in n.parameters())


def test_the_gradient_of_a_lane_is_its_own():
    separate = networks(3)
    lanes, inputs = StackedNetworks(separate), torch.randn(3, 7, 4)
    lanes(inputs)[1].square().sum().backward()
    separate[1](inputs[1]).square().sum().backward()
    for stack, parameter in zip(lanes.parameters(), separate[1].parameters(), strict=True):
        torch.testing.assert_close(stack.grad[1].view_as(parameter), parameter.grad)
        assert not stack.grad[[0, 2]].any()


def test_the_networks_are_copied():
    """A step of the stack does not move the networks it was made of, nor does a lane's state follow it."""
    separate = networks(2)
    lanes, before = StackedNetworks(separate), [p.detach().clone() for p in separate[0].parameters()]
    with torch.no_grad():
        for stack in lanes.parameters():
            stack.add_(1)
    assert all(torch.equal(a, b) for a, b in zip(separate[0].parameters(), before, strict=True))


def test_lanes_drop_units_of_their_own():
    (network,) = networks(1, hidden=(40,), dropout=0.5)
    lanes, inputs = StackedNetworks([network, network]), torch.ones(2, 50, 4)
    first, second = lanes(inputs)
    assert not torch.allclose(first, second)
    lanes.eval()
    first, second = lanes(inputs)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first, network.eval()(inputs[0]))


def test_networks_that_are_no_chain_have_one_seed():
    with pytest.raises(InputError, match="start one run for each seed"):
        StackedNetworks([nn.Linear(4, 2), nn.Linear(4, 2)])


# Training

RUNS = {
    "plain": ["loss=ce"],
    "posterior": ["loss={divergence: sl, correction: posterior}"],
    "objective": ["loss={divergence: gan, correction: objective}", "optimiser.nesterov=true"],
    "forward": ["loss={divergence: kl, correction: forward}", "optimiser.name=adam", "optimiser.lr=0.01"],
    "clipped": ["loss.divergence=js", "optimiser.clip_norm=0.05"],
    "fast biases": ["loss=ce", "optimiser.bias_rate=8", "optimiser.weight_decay=0.05"],
    "averaged": ["loss.divergence=sl", "ema=0.9", "optimiser.weight_decay=0.05"],
}


def _metrics(folder, seed):
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records if record["seed"] == seed]


@pytest.mark.parametrize("case", RUNS)
def test_seeds_side_by_side_are_the_seeds_alone(tmp_path, case):
    overrides = ["noise=binary:0.1,0.3", "epochs=8", "data.validation_share=0.2", *RUNS[case]]
    together = execute(small_config(f"seeds={list(SEEDS)}", *overrides), tmp_path / "together")
    for lane, seed in enumerate(SEEDS):
        alone = execute(small_config(f"seeds=[{seed}]", *overrides), tmp_path / str(seed))
        assert together["seeds"][lane]["noise"] == alone["seeds"][0]["noise"]
        stacked = load_file(tmp_path / "together" / f"model-seed{seed}.safetensors")
        single = load_file(tmp_path / str(seed) / "model.safetensors")
        assert stacked.keys() == single.keys()
        for key, weights in single.items():
            torch.testing.assert_close(stacked[key], weights, rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(
            _metrics(tmp_path / "together", seed), _metrics(tmp_path / str(seed), seed), strict=True
        ):
            assert mine.keys() == theirs.keys()
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
            assert mine["test_accuracy"] == pytest.approx(theirs["test_accuracy"], abs=0.011)  # a row at the border
            assert mine["calibration_error"] == pytest.approx(theirs["calibration_error"], abs=0.011)


def test_the_other_seeds_of_a_run_do_not_matter(tmp_path):
    for seeds in ([0, 1], [0, 2]):
        execute(small_config(f"seeds={seeds}"), tmp_path / str(seeds[1]))
    first, second = (load_file(tmp_path / name / "model-seed0.safetensors") for name in ("1", "2"))
    for key, weights in first.items():
        torch.testing.assert_close(weights, second[key], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("correction", ["forward", "objective", "posterior", "factored"])
def test_each_seed_has_its_own_estimate(tmp_path, monkeypatch, correction):
    def estimate(train, _):
        noise = Transition.symmetric(2, 0.1 + float(train.labels[:9].double().mean()) / 4)
        return estimate_of(noise, train.classes)

    monkeypatch.setattr(prepare, "estimated_noise", estimate)
    chosen = ("transition=estimated", f"loss.correction={correction}", "data.validation_share=0.2")
    execute(small_config("seeds=[0, 1]", *chosen), tmp_path / "both")
    noises = {prepare.prepare(small_config(f"seeds=[{seed}]", *chosen), seed).transition.definition for seed in (0, 1)}
    assert len(noises) == 2
    for seed in (0, 1):
        execute(small_config(f"seeds=[{seed}]", *chosen), tmp_path / str(seed))
        alone, stacked = (
            load_file(tmp_path / name) for name in (f"{seed}/model.safetensors", f"both/model-seed{seed}.safetensors")
        )
        for key, weights in alone.items():
            torch.testing.assert_close(stacked[key], weights, rtol=1e-4, atol=1e-5)
        mine, both = (metrics(tmp_path / name, seed) for name in (str(seed), "both"))
        assert both["val_accuracy"] == pytest.approx(mine["val_accuracy"])
        assert both["test_accuracy"] == pytest.approx(mine["test_accuracy"])


def metrics(folder, seed):
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record for record in records if record["seed"] == seed][-1]
