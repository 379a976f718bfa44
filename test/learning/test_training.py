"""Networks, training and export; where torch is installed (requirements/learning.txt)."""

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from kv_action_router.cli import train_encoder  # noqa: E402
from kv_action_router.encoding.network import layout  # noqa: E402
from kv_action_router.encoding.network.checkpoint import Checkpoint, Numbers  # noqa: E402
from kv_action_router.encoding.network.runner import open_networks  # noqa: E402
from kv_action_router.errors import CheckpointError  # noqa: E402
from kv_action_router.learning import batches, dataset, evaluation, losses, train  # noqa: E402
from kv_action_router.learning.cells import cell  # noqa: E402
from kv_action_router.learning.export import save_checkpoint, to_onnx  # noqa: E402
from kv_action_router.learning.networks import NETWORKS, fold  # noqa: E402

NUMBERS = Numbers(0.08, 0, 0.2, 0.5, 1.0, 1.0)


def trained_norms(name, seed=1):
    """Return a network whose normalizations are no identity."""
    torch.manual_seed(seed)
    network = NETWORKS[name]().train()
    for _ in range(3):
        network.logits(torch.randn(4, *layout.INPUTS[name][1:]))
    return network.eval()


@pytest.mark.parametrize("name", list(NETWORKS))
def test_folding_changes_no_answer(name):
    network = trained_norms(name)
    planes = torch.randn(layout.INPUTS[name])
    with torch.inference_mode():
        before = network(planes)
        after = fold(network)(planes)
    for a, b, shape in zip(before, after, layout.OUTPUTS[name].values(), strict=True):
        assert tuple(a.shape) == shape
        assert torch.allclose(a, b, atol=1e-4)


def test_onnxruntime_and_torch_agree_on_one_checkpoint(tmp_path):
    models = {name: to_onnx(name, trained_norms(name)) for name in NETWORKS}
    checkpoint = save_checkpoint(tmp_path / "disc", "disc", models, NUMBERS, {})
    planes = {
        name: np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        for name, shape in layout.INPUTS.items()
    }
    answers = {}
    for engine in ("onnx", "torch"):
        for name, network in open_networks(engine, checkpoint).items():
            network.input[:] = planes[name]
            network.run()
            for key, values in network.outputs.items():
                answers.setdefault(key, []).append(values.copy())
    for key, (first, second) in answers.items():
        assert np.abs(first).max() > 0.0, key
        assert first == pytest.approx(second, abs=1e-4), key


def test_a_weight_that_is_not_finite_is_not_saved(tmp_path):
    networks = {name: trained_norms(name) for name in NETWORKS}
    models = {name: to_onnx(name, network) for name, network in networks.items()}
    save_checkpoint(tmp_path / "disc", "disc", models, NUMBERS, {})
    before = (tmp_path / "disc" / "closeup.onnx").read_bytes()
    with torch.no_grad():
        networks["closeup"].answers.bias[0] = torch.nan
    models["closeup"] = to_onnx("closeup", networks["closeup"])
    with pytest.raises(CheckpointError, match=r"answers\.bias must be finite"):
        save_checkpoint(tmp_path / "disc", "disc", models, NUMBERS, {})
    wrong = dataclasses.replace(NUMBERS, window=0.0)
    with pytest.raises(CheckpointError, match="window"):
        save_checkpoint(tmp_path / "disc", "disc", {**models, "closeup": before}, wrong, {})
    assert (tmp_path / "disc" / "closeup.onnx").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disc"]


def test_weights_of_another_network_are_refused(tmp_path):
    one = to_onnx("overview", trained_norms("overview"))
    models = {"overview": one, "closeup": one}
    checkpoint = save_checkpoint(tmp_path / "disc", "disc", models, NUMBERS, {})
    with pytest.raises(CheckpointError, match="closeup must be weights of this network"):
        open_networks("torch", checkpoint)


def test_spread_learns_how_large_errors_are():
    torch.manual_seed(2)
    spread = torch.zeros(400, requires_grad=True)
    errors = torch.cat((torch.full((200,), 0.002), torch.full((200,), 0.05)))
    optimizer = torch.optim.Adam([spread], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        losses._likelihood(errors, spread, 0.0).sum().backward()
        optimizer.step()
    found = spread.detach().exp()
    assert torch.allclose(found, errors, rtol=0.15)


def test_scene_loss_wants_the_same_alike_and_others_apart():
    numbers = torch.tensor([0, 0, 1, 1])
    a, b = torch.eye(24)[0], torch.eye(24)[1]
    good = losses.scene_loss(torch.stack((a, a, b, b)), numbers)
    bad = losses.scene_loss(torch.stack((a, b, a, b)), numbers)
    assert good < bad


@pytest.fixture(scope="module")
def examples(maker, tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setattr(dataset, "SCENES", 4)
    plan = dataset.Plan(cell("touch"), 1, 3, tmp_path_factory.mktemp("examples"))
    files = dataset.render(plan)
    patch.undo()
    return dataset.load(files)


def course(folder, epochs=2):
    return train.Course({"overview": epochs, "closeup": epochs}, 1, 0.08, 0, folder)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_training_is_the_same_again_and_when_it_was_broken_off(
    name, examples, tmp_path, monkeypatch
):
    monkeypatch.setattr(batches, "_SCENES", 2)
    monkeypatch.setattr(batches, "_CUTS", 8)
    train.deterministic(1)

    def run(folder, stop_after=None):
        def report(_, epoch, told):
            if told and epoch == stop_after:
                raise KeyboardInterrupt

        return train.train(name, examples, course(folder), report).state_dict()

    whole, again = run(tmp_path / "a"), run(tmp_path / "b")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "c", stop_after=1)
    resumed = run(tmp_path / "c")
    for key, values in whole.items():
        assert torch.equal(values, again[key]), key
        assert torch.equal(values, resumed[key]), key


def test_the_whole_program_in_small(tmp_path, monkeypatch, capsys):
    """Frames of both cells, both networks, thresholds, checkpoint, card; and all of it again."""
    train.deterministic(1)  # torch's compiler must come before the renderer's: each brings its LLVM
    for module, name, value in (
        (dataset, "SCENES", 3), (train_encoder, "SCENES", 3), (train_encoder, "_HELD_BACK", 1),
        (batches, "_SCENES", 2), (batches, "_CUTS", 8), (train_encoder, "HELD_OUT_SCENES", 2),
        (evaluation, "DISTANCES", (0.0, 0.1)), (evaluation, "_PAIRS", 2),
        (evaluation, "_SCENES", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    jobs = []

    def in_this_process(names, options):
        for job in names:
            jobs.append(job)
            more = [f"--build={options.build}", "--shards=3", "--closeup-epochs=2"]
            assert train_encoder.main([*more, "--overview-epochs=1", f"--only={job}"]) == 0
            yield job, json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    monkeypatch.setattr(train_encoder, "_run", in_this_process)
    made = []
    for run in ("a", "b"):
        folder = tmp_path / run
        arguments = [f"--build={folder}", "--shards=3", "--overview-epochs=1", "--closeup-epochs=2"]
        arguments += [f"--checkpoint={folder / 'disc'}", f"--card={folder / 'disc.md'}"]
        assert train_encoder.main(arguments) == 0
        made.append(Checkpoint.load(folder / "disc"))
    assert jobs[:4] == ["frames-touch", "frames-screw", "overview", "closeup"]
    assert made[0].encoder_id == made[1].encoder_id  # the same seed, the same weights
    assert set(made[0].card["held_out"]["cells"]) == {"touch", "screw"}
    text = (tmp_path / "a" / "disc.md").read_text()
    assert made[0].encoder_id in text
    assert "| touch, random | network |" in text
    assert "| 100 |" in text  # of the table of likeness
