"""Tiny runs of all methods with a fixed seed. `test_golden_runs.py` compares their numbers with golden_runs.json.

python tests/methods/golden_runs.py             # adds the methods that are not in the file yet
python tests/methods/golden_runs.py elr sop     # writes these anew: say in the commit why their numbers have changed
python tests/methods/golden_runs.py --all       # writes all of them anew
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # the helpers of the tests

import torch
from hard_rows import needs_images, pretended_estimate, short_options
from small_runs import feature_archive, image_archive, own_config

from postmax import methods
from postmax.data import Batches
from postmax.train.build import build
from postmax.train.evaluation import outputs_of

FILE = Path(__file__).with_suffix(".json")


def golden_config(method, folder):
    """The configuration of a tiny run in which a method goes through all of its phases."""
    settings = [f"method={method}", "loss=ce", "noise=symmetric:0.3", *short_options(method, 3), "epochs=12"]
    settings += ["data.test_share=0.4", "optimiser.lr=0.05", "batch_size=16"]
    if needs_images(method):
        return own_config(image_archive(folder / "rows.npz", rows=90), "model=small", "model.width=2", *settings)
    return own_config(feature_archive(folder / "rows.npz", rows=150), "model=mlp", "model.hidden=[8]", *settings)


def run(method):
    """Return the numbers of a tiny run of a method.

    They are the loss of each epoch, the mean posterior of each class over the test rows, how many test rows are
    predicted right, and what the method reports about its last epoch.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = golden_config(method, Path(folder))
        built = build(config, estimate=pretended_estimate)
        trainer, losses, reports = built.trainer, [], {}
        for number in range(config.epochs):
            (record,) = trainer.epoch(number)
            losses.append(record["loss"])
            reports = record.get("method", {})
            if trainer.is_over:
                break
        trainer.resources.train(False)
        test = built.data[0].test
        with torch.no_grad():
            outputs = outputs_of(trainer.method.answer, Batches(test, 500, augment=built.views, shuffle=False))
    posterior = trainer.method.readings(outputs.double())["model"]
    return {
        "losses": [rounded(loss) for loss in losses],
        "posterior": [rounded(share) for share in posterior.mean(0).tolist()],
        "right": int((posterior.argmax(1) == test.labels).sum()),
        "reports": {name: rounded(value) for name, value in reports.items()},
    }


def rounded(value):
    return float(f"{value:.6g}")


def known():
    """Return the numbers in the file, by method."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def write(found):
    """Write the file, with one line for each method."""
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    torch.set_num_threads(1)
    given, names = sys.argv[1:], methods.names()
    chosen = names if given == ["--all"] else given or [name for name in names if name not in known()]
    found = {name: numbers for name, numbers in known().items() if name in names}
    for name in chosen:
        found[name] = run(name)
        print(name, found[name])
    write(found)


if __name__ == "__main__":
    main()
