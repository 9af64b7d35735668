"""PADDLES: the gradient without amplitudes against automatic derivatives, and what learns in which epoch."""

import pytest
import torch
from small_runs import image_archive, own_config, small_config
from torch import nn

from postmax.errors import InputError
from postmax.methods.parts.frequencies import amplitudes_detached, phase_gradient
from postmax.train.build import build


def trainer_of(*overrides):
    settings = ("method=paddles", "epochs=8", "method.amplitude_epochs=1", "method.warmup_epochs=3")
    return build(small_config(*settings, "optimiser.lr=0.1", "optimiser.weight_decay=0", *overrides)).trainer


def image_trainer(tmp_path, *overrides):
    path = image_archive(tmp_path / "images.npz", rows=60, side=32)
    settings = ("model=small", "model.width=2", "method=paddles", "epochs=8", "method.amplitude_epochs=1")
    return build(own_config(path, *settings, "method.warmup_epochs=3", "batch_size=16", *overrides)).trainer


def rebuilt(maps, *, amplitude, phase):
    """The published formula: the maps from their amplitudes and phases, some of which are detached."""
    spectrum = torch.fft.fft2(maps)
    lengths, angles = spectrum.abs(), spectrum.angle()
    lengths, angles = lengths if amplitude else lengths.detach(), angles if phase else angles.detach()
    return torch.fft.ifft2(torch.polar(lengths, angles)).real


def random_maps(height, width):
    generator = torch.Generator().manual_seed(height + width)
    return tuple(torch.randn(2, 3, height, width, generator=generator, dtype=torch.float64) for _ in range(2))


@pytest.mark.parametrize(("height", "width"), [(4, 4), (5, 7), (8, 3), (1, 6), (2, 2)])
def test_the_gradient_of_the_phases_is_the_derivative(height, width):
    maps, gradient = random_maps(height, width)
    found = phase_gradient(maps, gradient)
    maps.requires_grad_()
    parts = [
        torch.autograd.grad((rebuilt(maps, amplitude=not phase, phase=phase) * gradient).sum(), maps)[0]
        for phase in (True, False)
    ]
    torch.testing.assert_close(found, parts[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(parts[0] + parts[1], gradient)
    if max(height, width) > 2:
        assert found.abs().max() > 0.1
    else:
        assert found.abs().max() < 1e-5


def test_rows_and_channels_do_not_change_each_other():
    maps, gradient = random_maps(4, 6)
    for row in range(2):
        for channel in range(3):
            one = (slice(row, row + 1), slice(channel, channel + 1))
            torch.testing.assert_close(
                phase_gradient(maps, gradient)[one], phase_gradient(maps[one], gradient[one]), atol=1e-6, rtol=1e-6
            )


def test_frequencies_without_amplitude_have_no_phase():
    gradient = torch.randn(1, 2, 4, 4)
    assert not phase_gradient(torch.zeros(1, 2, 4, 4), gradient).any()
    maps = torch.ones(1, 2, 4, 4)  # only the constant frequency
    assert phase_gradient(maps, gradient).abs().max() < 1e-6


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18, 1e30])
def test_maps_of_any_size_have_a_finite_gradient(scale):
    maps, gradient = (part.float() for part in random_maps(4, 4))
    expected = phase_gradient(maps, gradient)
    torch.testing.assert_close(phase_gradient(maps * scale, gradient), expected, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_gradient_has_the_type_of_the_maps(dtype):
    maps = torch.randn(1, 2, 4, 4).to(dtype)
    assert phase_gradient(maps, maps).dtype == dtype


def test_inside_the_output_stays_and_the_gradient_changes():
    layer, inputs = nn.Conv2d(2, 3, 3), torch.randn(4, 2, 8, 8)
    plain = layer(inputs)
    target = torch.randn_like(plain)
    with amplitudes_detached(layer):
        found = layer(inputs)
        (found * target).sum().backward()
    assert torch.equal(found, plain)
    (expected,) = torch.autograd.grad(plain, layer.weight, phase_gradient(plain.detach(), target))
    torch.testing.assert_close(layer.weight.grad, expected)
    assert not torch.allclose(expected, torch.autograd.grad((layer(inputs) * target).sum(), layer.weight)[0])


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 2, 2), (4, 5, 1, 1)])
def test_features_without_phases_are_stopped(shape):
    layer = nn.Identity()
    inputs = torch.randn(shape).requires_grad_()
    with amplitudes_detached(layer):
        assert not layer(inputs).requires_grad
    assert layer(inputs).requires_grad


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (("model.hidden=[]",), None),
        (("model.hidden=[4]",), "ReLU"),
        (("model.hidden=[6,5,4]", "model.activation=tanh"), "Tanh"),
    ],
)
def test_the_place_in_a_perceptron(model, expected):
    method = trainer_of(*model).method
    place = method._place
    assert (None if place is None else type(place).__name__) == expected
    if len(method._parts) > 2:
        assert place is method.answer.body[3]  # after the second of three hidden layers: the third one is the block


def test_the_place_in_a_convolutional_network(tmp_path):
    method = image_trainer(tmp_path).method
    assert method._place is method.answer.body


def changed(trainer, epoch):
    before = {name: tensor.clone() for name, tensor in trainer.method.answer.named_parameters()}
    trainer.epoch(epoch)
    return {
        n.partition(".weight")[0] for n, p in trainer.method.answer.named_parameters() if not torch.equal(p, before[n])
    }


def test_a_perceptron_stops_with_the_amplitudes():
    trainer = trainer_of("model.hidden=[6,5,4]", "optimiser.momentum=0", "optimiser.nesterov=false")
    names = {"body.0", "body.2", "body.4", "fc"}
    found = [changed(trainer, epoch) & names for epoch in range(6)]
    late = {"body.4", "fc"}
    assert found == [names, late, late, late, {"fc"}, names]


def test_a_convolutional_network_learns_through_its_phases(tmp_path):
    """The same first batch, with all of its gradient and with that of the phases alone."""
    gradients = {}
    for amplitude_epochs in (0, 1):
        trainer = image_trainer(tmp_path, f"method.amplitude_epochs={amplitude_epochs}")
        logits = next(trainer.steps(0)).logits
        gradients[amplitude_epochs] = {n: p.grad.clone() for n, p in trainer.method.answer.named_parameters()}, logits
    (phases, first), (whole, second) = gradients[0], gradients[1]
    assert torch.equal(first, second)
    for name, gradient in whole.items():
        is_later = name.startswith(("hidden", "fc"))
        assert torch.equal(gradient, phases[name]) == is_later
        assert phases[name].abs().sum() > 0


def test_the_hook_is_gone_after_an_epoch(tmp_path):
    trainer = image_trainer(tmp_path)
    for epoch in range(4):
        trainer.epoch(epoch)
        assert not trainer.method._place._forward_hooks


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("epochs=212",), (19, 30)),
        (("epochs=305", "method.semi_supervised=true"), (30, 35)),
        (("epochs=21",), (2, 3)),
        (("epochs=2",), (0, 1)),
        (("epochs=8", "method.warmup_epochs=0"), (0, 0)),
        (("epochs=100", "method.warmup_epochs=30"), (19, 30)),
    ],
)
def test_the_phases_are_shares(options, expected):
    method = build(small_config("method=paddles", *options)).trainer.method
    assert (method._amplitude_epochs, method._warmup_epochs) == expected


@pytest.mark.parametrize("option", ["amplitude_epochs=-1", "amplitude_epochs=x", "warmup_epochs=-1", "alpha=0"])
def test_options_that_cannot_be(option):
    with pytest.raises(InputError, match=rf"method\.{option.partition('=')[0]} must be"):
        trainer_of(f"method.{option}")
