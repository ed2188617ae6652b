"""Read the event file of a run with TensorBoard's own reader and compare it with the run's metrics."""

import json
import math
import struct
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = Path(sys.argv[1])
epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
# 0: keep everything.
events = EventAccumulator(str(run), size_guidance={"scalars": 0, "histograms": 0, "images": 0})
events.Reload()
tags = events.Tags()

# Every scalar is there, at every epoch, with the value that was recorded.
recorded = {
    "likelihood/train": lambda m: m["train_log_likelihood"],
    "likelihood/validation": lambda m: m["validation_log_likelihood"],
    "likelihood/pseudo": lambda m: m["pseudo_log_likelihood"],
    "likelihood/log_z": lambda m: m["log_z"]["value"],
    "likelihood/log_z_std_err": lambda m: m["log_z"]["std_err"],
    "training/learning_rate": lambda m: m["learning_rate"],
    "training/reconstruction_error": lambda m: m["reconstruction_error"],
    "training/weight_rms": lambda m: m["weight_rms"],
    "training/gradient_norm": lambda m: m["gradient_norm"],
    "training/seconds": lambda m: m["seconds"],
    "tours/completion": lambda m: m["tours"]["n_completed"]
    / (m["tours"]["n_completed"] + m["tours"]["n_truncated"] + m["tours"]["n_carried"]),
    "tours/own_start": lambda m: m["tours"]["n_completed_at_own_start"] / m["tours"]["n_completed"],
    "tours/mean_length": lambda m: m["tours"]["total_length"] / m["tours"]["n_completed"],
    "tours/set_size": lambda m: m["tours"]["set_size"],
    "tours/log_z_s": lambda m: m["tours"]["log_z_s"],
}
assert set(tags["scalars"]) == set(recorded), sorted(tags["scalars"])
for tag, value in recorded.items():
    read = events.Scalars(tag)
    assert [event.step for event in read] == [m["epoch"] for m in epochs], tag
    for event, m in zip(read, epochs):
        assert math.isclose(event.value, value(m), rel_tol=1e-6, abs_tol=1e-7), (tag, event, value(m))

parameters = ["parameters/hidden_bias", "parameters/visible_bias", "parameters/weights"]
assert sorted(tags["histograms"]) == parameters, tags["histograms"]
for tag, n in zip(parameters, [6, 64, 6 * 64]):
    read = events.Histograms(tag)
    assert len(read) == len(epochs)
    for event in read:
        histogram = event.histogram_value
        assert sum(histogram.bucket) == histogram.num == n, (tag, histogram)
        assert histogram.bucket_limit == sorted(histogram.bucket_limit)
weights = events.Histograms("parameters/weights")[-1].histogram_value
assert math.isclose(math.sqrt(weights.sum_squares / weights.num), epochs[-1]["weight_rms"], rel_tol=1e-6)

assert sorted(tags["images"]) == ["chains", "filters"], tags["images"]
for image in events.Images("filters") + events.Images("chains"):
    assert image.encoded_image_string.startswith(b"\x89PNG")
    assert struct.unpack(">II", image.encoded_image_string[16:24]) == (image.width, image.height)

n = sum(len(tags[kind]) for kind in ["scalars", "histograms", "images"])
print(f"{n} passed, 0 failed")
