"""What a method asks the loop for, and what the loop refuses."""

import pytest
import torch
from small_runs import outcome, small_config, stop_after
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
