"""Pin results to the bit, so that every change of behaviour shows.

`MCLV_UPDATE_PINS=1 target/python/venv/bin/pytest python/tests/test_pins.py` writes `pins.json` anew, after `scripts/python`.
"""

import dataclasses
import hashlib
import json
import os
import pathlib

import mclv
import numpy as np
import pytest

PINS = pathlib.Path(__file__).with_name("pins.json")


def digest(array):
    array = np.ascontiguousarray(array)
    return f"{array.dtype} {list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()}"


def pinned(value):
    """The value as JSON: arrays by their digest, numbers in full, times left out."""
    if isinstance(value, mclv.RBM):
        value = {name: getattr(value, name) for name in ("weights", "visible_bias", "hidden_bias")}
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: pinned(part) for name, part in value.items() if not name.endswith("seconds")}
    if isinstance(value, (list, tuple)):
        return [pinned(part) for part in value]
    return digest(value) if isinstance(value, np.ndarray) else value


@pytest.fixture(scope="module")
def model():
    """A model whose tours are of several steps, the same with every version of NumPy."""
    weights = (np.arange(64 * 12) * 7919 % 1009 / 504.5 - 1).reshape(64, 12)
    return mclv.RBM(weights, weights[:, 0] - 1, weights[0])


def train(**settings):
    return lambda bits, _: mclv.train(bits, 10, validation=bits[:50], epochs=3, seed=2, eval_every=2, **settings)


def fitted(fit, **settings):
    def run(bits, _):
        rbm = getattr(mclv.BernoulliRBM(10, n_iter=2, random_state=3, **settings), fit)(bits)
        return [rbm.to_model(), rbm.history_, rbm.transform(bits), rbm.score_samples(bits), rbm.sample(4, burn_in=5)]

    return run


def log_z(method, **settings):
    return lambda bits, model: mclv.log_partition(model, method, data=bits, seed=4, **settings)


def tours(from_rows=False, **settings):
    def run(bits, model):
        stopping_set = mclv.StoppingSet.from_data(model, bits, samples_per_row=2, seed=2)
        return [stopping_set.states, mclv.tours(model, stopping_set, 2000, data=bits if from_rows else None, seed=4, **settings)]

    return run


CASES = {
    "train, default": train(),
    "train, cd": train(gradient="cd", k=2, centred=False, schedule="cosine"),
    "train, pcd and adam": train(gradient="pcd", n_chains=50, optimizer="adam", l2=1e-4),
    "train, lvs": train(gradient="lvs", unfinished="keep", k=3, samples_per_row=2),
    "train, exact": train(gradient="exact", momentum=0.5, clip=0.5),
    "train, weights": train(gradient="pcd", weights=np.arange(300) % 3),
    "BernoulliRBM.fit": fitted("fit", eval_every=1),
    "BernoulliRBM.fit, lvs": fitted("fit", gradient="lvs", batch_size=50, unfinished="drop", k=2),
    "BernoulliRBM.partial_fit": fitted("partial_fit", gradient="cd", optimizer="adam", learning_rate=0.01),
    "log Z, best": log_z("best"),
    "log Z, mclv": log_z("mclv", n_tours=2000),
    "log Z, ladder": log_z("ladder", target_se=0.1),
    "log Z, ais": log_z("ais", n_betas=200, n_chains=50),
    "log Z, reverse-ais": log_z("reverse-ais", n_betas=200),
    "log Z, no time to enumerate": log_z("best", time_limit=0, target_se=0.05),
    "likelihood": lambda bits, model: mclv.log_likelihood(model, bits, method="mclv", n_tours=2000, seed=4),
    "tours": tours(),
    "tours, cut": tours(max_length=3),
    "tours, stratified": tours(stratified=True),
    "tours, mean-field": tours(visible="mean-field"),
    "tours, from rows": tours(from_rows=True, max_length=50),
    "stopping set of chains": lambda _, model: mclv.StoppingSet.from_chains(model, n_chains=8, burn_in=10, n_steps=10, seed=1).states,
    "sample": lambda _, model: model.sample(100, burn_in=20, seed=3),
    "energies and means": lambda bits, model: [model.free_energy(bits), model.pseudo_log_likelihood(bits), model.mean_hidden(bits)],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_result_is_pinned(name, bits, model):
    found = json.loads(json.dumps(pinned(CASES[name](bits, model))))
    pins = json.loads(PINS.read_text()) if PINS.exists() else {}
    if os.environ.get("MCLV_UPDATE_PINS"):
        pins[name] = found
        PINS.write_text(json.dumps({name: pins[name] for name in CASES if name in pins}, indent=1) + "\n")
    assert found == pins.get(name)


def test_a_changed_number_is_noticed_and_a_time_is_not(model):
    changed = mclv.RBM(np.nextafter(model.weights, np.float32(9)), model.visible_bias, model.hidden_bias)
    assert pinned(model) == pinned(model) != pinned(changed)
    exact = mclv.log_partition(model)
    assert pinned(exact) == pinned(dataclasses.replace(exact, seconds=9.0))
    assert pinned(exact) != pinned(dataclasses.replace(exact, value=np.nextafter(exact.value, 0)))
