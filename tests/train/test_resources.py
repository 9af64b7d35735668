"""What a method asks the loop for, and what the loop refuses."""

import json

import pytest
import torch
from safetensors.torch import load_file
from small_runs import feature_archive, outcome, own_config, small_config, stop_after
from torch import nn

from postmax import methods
from postmax.errors import InputError
from postmax.methods import catalogue
from postmax.registry import Registry
from postmax.runs import DamagedRun, execute
from postmax.train.build import build
from postmax.train.ema import Average


@pytest.fixture
def register(monkeypatch):
    """Register a method for one test."""
    monkeypatch.setattr(catalogue, "_METHODS", Registry("method"))

    def add(build):
        methods.register("mine", build, "for a test")

    return add


class Plain(methods.Method):
    def __init__(self, setup, *, networks=1):
        super().__init__(setup)
        self.setup = setup
        self.nets = [setup.network() for _ in range(networks)]
        self.optimisers = [setup.optimiser(list(net.parameters()), str(i)) for i, net in enumerate(self.nets)]
        self.answer = self.nets[0]

    def epoch(self, run):
        for batch in run.batches():
            for net, optimiser in zip(self.nets, self.optimisers, strict=True):
                value = self.loss(net(batch.inputs), batch.labels).mean()
                run.update(value, optimiser)
            yield methods.Step(value, values={"half": 0.5})


def test_numbers_of_a_method_are_in_the_metrics(register, tmp_path):
    register(Plain)
    execute(small_config("method=mine"), tmp_path)
    assert '"method":{"half":0.5}' in (tmp_path / "metrics.jsonl").read_text()


def test_several_seeds_need_a_method_that_says_so_itself(register, tmp_path):
    class Heir(Plain):
        pass

    Plain.one_network_one_loss = True
    try:
        register(Heir)
        with pytest.raises(InputError, match="trains one seed at a time"):
            execute(small_config("method=mine", "seeds=[0, 1]"), tmp_path)
    finally:
        del Plain.one_network_one_loss


def test_each_network_has_an_average_that_moves_with_it(register):
    """Networks that are trained in turn: the average of the first does not run after it while the second is trained."""

    class InTurn(Plain):
        def epoch(self, run):
            for net, optimiser in zip(self.nets, self.optimisers, strict=True):
                for batch in run.batches(stream=f"{id(net)}"[-1]):
                    value = self.loss(net(batch.inputs), batch.labels).mean()
                    run.update(value, optimiser)
                    yield methods.Step(value)

    register(InTurn)
    trainer = build(small_config("method=mine", "method.networks=2", "ema=0.9")).trainer
    expected = [Average(net, 0.9) for net in trainer.method.nets]
    places = iter([0] * len(trainer.batches) + [1] * len(trainer.batches))
    for _ in trainer.steps(0):
        expected[next(places)].update()
    for number, average in enumerate(expected):
        found = trainer.save().part(f"average/{number}")
        assert all(torch.equal(found[key], tensor) for key, tensor in average.state().items())


def test_two_optimisers_of_one_network_move_its_average_once(register):
    class BodyAndHead(Plain):
        def __init__(self, setup):
            super().__init__(setup)
            head = list(self.answer.fc.parameters())
            self.optimisers.append(setup.optimiser(head, "head", lr=0.001))

        def epoch(self, run):
            for batch in run.batches():
                value = self.loss(self.answer(batch.inputs), batch.labels).mean()
                run.update(value, *self.optimisers)
                yield methods.Step(value)

    register(BodyAndHead)
    trainer = build(small_config("method=mine", "ema=0.9")).trainer
    next(trainer.steps(0))
    assert int(trainer.save().part("average/0")["steps"]) == 1


def test_a_network_without_an_optimiser_is_not_averaged(register):
    class Teacher(Plain):
        def __init__(self, setup):
            super().__init__(setup)
            self.teacher = setup.network()

    register(Teacher)
    trainer = build(small_config("method=mine", "ema=0.9")).trainer
    before = [p.clone() for p in trainer.method.teacher.parameters()]
    with torch.no_grad():
        for parameter in trainer.method.teacher.parameters():
            parameter.add_(1)
    with trainer.averaged():
        for parameter, old in zip(trainer.method.teacher.parameters(), before, strict=True):
            assert torch.equal(parameter, old + 1)


def test_a_factor_for_the_learning_rate(register):
    class Slow(Plain):
        def epoch(self, run):
            for batch in run.batches():
                value = self.loss(self.answer(batch.inputs), batch.labels).mean()
                run.update(value, *self.optimisers, rate=0.25)
                yield methods.Step(value)

    register(Slow)
    trainer = build(small_config("method=mine", "schedule=constant")).trainer
    next(trainer.steps(0))
    assert trainer.method.optimisers[0].param_groups[0]["lr"] == pytest.approx(0.25 * 0.05)


def test_an_empty_selection_has_no_batches_even_if_endless(register):
    class Empty(Plain):
        def epoch(self, run):
            nothing = torch.tensor([], dtype=torch.long)
            assert list(run.batches(nothing)) == []
            assert list(run.batches(nothing, endless=True)) == []
            assert run.steps == 8
            yield from super().epoch(run)

    register(Empty)
    list(build(small_config("method=mine")).trainer.steps(0))


def test_state_is_a_copy_and_is_restored(register, tmp_path):
    class Counting(Plain):
        def __init__(self, setup):
            super().__init__(setup)
            self.mine = torch.ones(2)
            self.count = setup.state("count", self.mine)
            assert self.count is not self.mine
            assert self.count.device == setup.device

        def epoch(self, run):
            self.count += 1
            yield from super().epoch(run)
            with torch.no_grad():  # the weights depend on the state, so that a lost state shows
                next(iter(self.answer.parameters())).mul_(1 + 1e-3 * self.count[0])

    register(Counting)
    config = small_config("method=mine", "ema=0.9")
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


class Foreign(Plain):
    def __init__(self, setup):
        super().__init__(setup)
        self.answer = nn.Sequential(self.answer, nn.Linear(2, 2))


class NoAnswer(Plain):
    def __init__(self, setup):
        super().__init__(setup)
        del self.answer


class TwoNames(Plain):
    def __init__(self, setup):
        super().__init__(setup)
        setup.row_state("a")
        setup.row_state("a")


class NoKind(Plain):
    def __init__(self, setup):
        super().__init__(setup)
        setup.optimiser(list(self.answer.parameters()), "other", kind="rmsprop")


class NoRate(Plain):
    def __init__(self, setup):
        super().__init__(setup)
        setup.optimiser(list(self.answer.parameters()), "other", lr=float("nan"))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Foreign, "weights that do not come from setup.network"),
        (NoAnswer, "the method mine must set `answer`"),
        (TwoNames, "the name 'a' for two tensors"),
        (NoKind, "the optimiser 'other' of the method: name must be one of sgd, adam, adamw"),
        (NoRate, "the optimiser 'other' of the method: lr must be a number above 0, not nan"),
    ],
)
def test_what_is_refused_when_a_method_is_built(register, method, words):
    register(method)
    with pytest.raises(InputError, match=words):
        build(small_config("method=mine"))


def test_an_optimiser_from_elsewhere_is_refused(register):
    class Own(Plain):
        def epoch(self, run):
            for batch in run.batches():
                value = self.loss(self.answer(batch.inputs), batch.labels).mean()
                run.update(value, torch.optim.SGD(self.answer.parameters(), lr=0.1))
                yield methods.Step(value)

    register(Own)
    with pytest.raises(InputError, match=r"must take its optimisers from setup\.optimiser"):
        next(build(small_config("method=mine")).trainer.steps(0))


def test_an_epoch_without_a_step(register, tmp_path):
    class Lazy(Plain):
        def epoch(self, run):
            yield from ()

    register(Lazy)
    with pytest.raises(InputError, match="the method mine made no step in epoch 1"):
        execute(small_config("method=mine"), tmp_path)


def test_a_checkpoint_of_another_method_of_this_name(register, tmp_path):
    class More(Plain):
        def __init__(self, setup):
            super().__init__(setup)
            setup.row_state("more")

    register(Plain)
    config = small_config("method=mine")
    stop_after(config, tmp_path, 2)
    catalogue._METHODS._values["mine"] = catalogue.Entry("mine", More, "")
    with pytest.raises(DamagedRun, match=r"does not fit the method as it is now \(it has the tensors \[\]"):
        execute(config, tmp_path)


def test_steps_and_networks_are_counted(register, tmp_path):
    register(Plain)
    result = execute(small_config("method=mine", "method.networks=2"), tmp_path)
    assert result["networks"] == 2
    assert result["steps"] == 4 * 8
    assert result["parameters"] == 30 * 4 + 4 + 4 * 2 + 2


class WithHead(methods.Method):
    """A network with a second head, which learns the same labels."""

    def __init__(self, setup):
        super().__init__(setup)
        self.answer = setup.network()
        self.head = setup.module("head", lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2)))
        self.optimiser = setup.optimiser([*self.answer.parameters(), *self.head.parameters()])

    def epoch(self, run):
        for batch in run.batches():
            features = self.answer.features(batch.inputs)
            losses = (self.loss(head(features), batch.labels).mean() for head in (self.answer.fc, self.head))
            value = sum(losses)
            run.update(value, self.optimiser)
            yield methods.Step(value, batch.rows)


def test_a_module_is_saved_and_follows_the_mode_but_does_not_answer(register, tmp_path):
    register(WithHead)
    config = small_config("method=mine", "ema=0.9")
    built = build(config)
    first, again = built.trainer.method.head[1].weight, build(config).trainer.method.head[1].weight
    assert torch.equal(first, again)
    assert not torch.equal(first, build(small_config("method=mine", "seeds=1")).trainer.method.head[1].weight)
    built.trainer.resources.train(False)
    assert not built.trainer.method.head[0].training
    assert built.trainer.networks == 1
    execute(config, tmp_path / "whole")
    stop_after(config, tmp_path / "stopped", 2)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


def test_two_modules_need_two_names(register):
    class Twice(WithHead):
        def __init__(self, setup):
            super().__init__(setup)
            setup.module("head", lambda: nn.Linear(1, 1))

    register(Twice)
    with pytest.raises(InputError, match="the name 'head' for two modules"):
        build(small_config("method=mine"))


class StopsEarly(Plain):
    """Stops after two epochs, and says how many rows it has seen."""

    def __init__(self, setup):
        super().__init__(setup)
        self.count = setup.state("count", torch.zeros((), dtype=torch.long))

    def epoch(self, run):
        self.count += 1
        yield from super().epoch(run)

    @property
    def is_over(self):
        return bool(self.count == 2)

    def learnt(self):
        return {"count": self.count}


def test_a_method_may_stop_early_and_leave_what_it_learnt(register, tmp_path):
    register(StopsEarly)
    config = small_config("method=mine", "epochs=6", "evaluate_every=4")
    told = []
    result = execute(config, tmp_path / "whole", progress=told.append)
    lines = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert "test_accuracy" in lines[-1]
    assert result["seeds"][0]["readings"]["model"]["last"]["epoch"] == 2
    assert told[-1].seconds_left == 0
    assert load_file(tmp_path / "whole" / "learnt.safetensors")["count"] == 2
    stop_after(config, tmp_path / "stopped", 1)
    execute(config, tmp_path / "stopped")
    assert outcome(tmp_path / "stopped") == outcome(tmp_path / "whole")


class Asks(Plain):
    """Asks for the noise."""

    def __init__(self, setup, *, which="estimate"):
        super().__init__(setup)
        self.noise = getattr(setup, which)()


def test_a_method_may_ask_for_an_estimate_which_the_run_records(register, tmp_path, monkeypatch):
    monkeypatch.setenv("POSTMAX_DATA", str(tmp_path / "data"))
    register(Asks)
    built = build(small_config("method=mine"))
    assert built.data[0].estimate is built.trainer.method.noise
    assert built.trainer.method.noise.rows == 456
    execute(small_config("method=mine"), tmp_path / "run")
    assert (tmp_path / "run" / "transition.json").exists()


@pytest.mark.parametrize(("setting", "rate"), [("known", 0.2), ("symmetric:0.3", 0.3)])
def test_a_method_may_ask_for_the_noise_that_the_configuration_names(register, setting, rate):
    register(Asks)
    trainer = build(small_config("method=mine", "method.which=transition", f"transition={setting}")).trainer
    assert trainer.method.noise.matrix[0, 1] == pytest.approx(rate)


def test_noise_that_is_not_known_is_refused(register, tmp_path):
    register(Asks)
    path = feature_archive(tmp_path / "mine.npz")
    with pytest.raises(InputError, match="method=mine needs the noise, which is not known"):
        build(own_config(path, "method=mine", "method.which=transition"))


def test_passes_and_operations_are_counted(register, tmp_path):
    register(Plain)
    execute(small_config("method=mine", "method.networks=2"), tmp_path)
    line = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    assert line["passes"] == 2 * 456
    assert line["operations"] == 3 * 2 * 456 * 2 * (30 * 4 + 4 * 2)


def test_features_and_passes_without_gradient_are_counted(register, tmp_path):
    class Looks(WithHead):
        def epoch(self, run):
            run.evaluate(self.answer)
            yield from super().epoch(run)

    register(Looks)
    execute(small_config("method=mine"), tmp_path)
    line = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])
    assert line["passes"] == 456 + 456
    assert line["operations"] == (456 + 3 * 456) * 2 * (30 * 4 + 4 * 2)
