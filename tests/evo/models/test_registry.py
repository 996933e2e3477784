"""What is known of models."""

import msgspec
import pytest

from evo.logs.records import Model
from evo.models import registry
from evo.models.registry import ModelError, find_model, load_models, resolve_sampling


@pytest.fixture(autouse=True)
def no_user_file(monkeypatch, tmp_path):
    monkeypatch.delenv("EVO_MODELS", raising=False)
    monkeypatch.setattr(registry, "USER_FILE", tmp_path / "absent.toml")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Makes a file of models that `EVO_MODELS` names."""
    path = tmp_path / "models.toml"

    def write(text):
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv("EVO_MODELS", str(path))
        return path

    return write


def test_the_shipped_table_holds_what_the_paper_and_the_readme_need():
    models = load_models()
    known = {name: model.active_parameters for name, model in models.items()}
    # arXiv 2605.29268
    assert known["qwen3-8b"] == 8_190_726_144
    assert known["qwen3-14b"] == 14_768_296_960
    assert known["llama-3.1-8b"] == 8_030_261_248
    assert known["qwen2.5-coder-1.5b"] == 1_543_714_304
    assert {"qwen3-1.7b", "qwen3-4b"} < models.keys()
    assert [name for name, model in models.items() if not model.is_llm] == ["offline", "offline-2"]
    assert models["offline"].version is not None


@pytest.mark.parametrize("name", load_models())
def test_every_shipped_model_survives_a_log_and_its_defaults_are_in_range(name):
    model = find_model(name)
    assert model.name == name
    assert msgspec.json.decode(msgspec.json.encode(model), type=Model) == model
    assert resolve_sampling(model).max_tokens == model.max_tokens
    assert (model.input_price is None) == (model.output_price is None)


def test_a_users_file_adds_and_replaces(file, monkeypatch):
    text = '["my.model"]\nbase_url = "http://h/v1"\n["qwen3-8b"]\ninput_price = 0\n'
    path = file(text + '[m]\nomit = ["seed"]\n[m.extra_body]\ntop_k = 20\n')
    assert find_model("my.model").base_url == "http://h/v1"
    replaced = load_models()["qwen3-8b"]
    assert (replaced.active_parameters, replaced.input_price) == (None, 0)
    assert find_model("m").extra_body == {"top_k": 20, "seed": None}
    monkeypatch.delenv("EVO_MODELS")
    assert "my.model" not in load_models()
    monkeypatch.setattr(registry, "USER_FILE", path)
    assert find_model("my.model").name == "my.model"
    monkeypatch.setenv("EVO_MODELS", "none.toml")
    with pytest.raises(ModelError, match="cannot read"):
        load_models()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[m]\ntemprature = 1\n", r"model 'm': unknown key 'temprature'; allowed: id, .*omit"),
        ("[m]\nname = 'x'\n", "unknown key 'name'"),
        ("[qwen3-1.7b]\n", r'quotes: \["qwen3-1\.7b"\]'),
        ("m = 3\n", "expected a table"),
        ("[m]\ntemperature = 'hot'\n", "temperature"),
        ("[m]\ntop_p = 0\n", "top_p"),
        ("[m]\nmax_tokens = 0\n", "max_tokens"),
        ("[m]\ncontext = 100\nmax_tokens = 100\n", "less than the context window"),
        ("[m]\ninput_price = -1\n", "input_price"),
        ("[m]\noutput_price = nan\n", "output_price"),
        ("[m]\nactive_parameters = 0\n", "active_parameters"),
        ("[m]\nomit = 'seed'\n", "omit"),
        ("[m]\nextra_body = 3\n", "extra_body"),
        ("[m\n", "not TOML"),
    ],
)
def test_mistakes_in_a_file_are_named(file, text, message):
    path = file(text)
    with pytest.raises(ModelError, match=message) as raised:
        load_models()
    assert str(path) in str(raised.value)


def test_an_unknown_name_says_what_is_meant_what_is_known_and_how_to_add_it(file):
    with pytest.raises(ModelError) as raised:
        find_model("qwen3-8")
    message = str(raised.value)
    assert "did you mean 'qwen3-8b'?" in message
    assert all(name in message for name in load_models())
    lines = [line.strip() for line in message.splitlines() if line.startswith("    ")]
    file("\n".join(lines))
    assert "qwen3-8" in load_models()


def test_sampling_defaults_to_the_models_and_takes_what_is_given():
    model = Model(name="m", temperature=0.3, top_p=0.5, max_tokens=77)
    default = resolve_sampling(model)
    assert (default.temperature, default.top_p, default.max_tokens) == (0.3, 0.5, 77)
    given = resolve_sampling(model, temperature=0, top_p=1, max_tokens=1)
    assert (given.temperature, given.top_p, given.max_tokens) == (0.0, 1.0, 1)


WRONG = {"temperature": [-0.1, 2.1, float("nan")], "top_p": [0, 1.5]}
WRONG["max_tokens"] = [0, 1.5, True, 10_000]


@pytest.mark.parametrize("name", WRONG)
def test_sampling_out_of_range_names_the_setting_and_the_value(name):
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=rf"{name}: expected .* got {value!r}"):
            resolve_sampling(Model(name="m", context=10_000), **{name: value})
