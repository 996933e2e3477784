"""When prices and a context are filled in, from where, and when they are not."""

from types import SimpleNamespace

import pytest

from evo.logs.records import Model
from evo.models import prices
from evo.models.prices import _is_public, with_prices

LISTED = {"input_price": 1.0, "cached_price": 0.25, "output_price": 4.0, "context": 128_000}


@pytest.fixture
def asked(monkeypatch):
    """What the data were asked for; they know every model but `unknown`."""
    seen = []

    def listed(name, url):
        seen.append((name, url))
        return None if name == "unknown" else (dict(LISTED), "data: p, m")

    monkeypatch.setattr(prices, "_listed", listed)
    for variable in ("OPENAI_BASE_URL", "LLM_API_BASE"):
        monkeypatch.delenv(variable, raising=False)
    return seen


def test_what_a_model_does_not_state_is_filled_in_and_said(asked):
    found = with_prices(Model(name="m"))
    assert (found.input_price, found.cached_price, found.output_price) == (1.0, 0.25, 4.0)
    assert (found.context, found.filled) == (128_000, "data: p, m")
    assert with_prices(Model(name="m", context=10)).context == 10
    assert with_prices(Model(name="unknown")) == Model(name="unknown")


@pytest.mark.parametrize("own", [{"input_price": 0.5}, {"output_price": 0.0}])
def test_a_price_of_ones_own_is_not_mixed_with_those_of_others(asked, own):
    found = with_prices(Model(name="m", **own))
    stated = {
        name: getattr(found, name) for name in ("input_price", "cached_price", "output_price")
    }
    assert stated == dict.fromkeys(stated) | own
    assert found.context == 128_000
    complete = Model(name="m", context=10, **own)
    assert with_prices(complete).filled == ""


@pytest.mark.parametrize(
    "model",
    [
        Model(name="m", is_llm=False),
        Model(name="m", call=len),
        Model(name="m", input_price=1.0, cached_price=1.0, output_price=1.0),
    ],
)
def test_a_stand_in_a_function_and_a_model_with_all_prices_are_left_as_they_are(asked, model):
    assert with_prices(model) is model
    assert asked == []


def test_the_address_is_the_models_own_then_that_of_the_environment(asked, monkeypatch):
    with_prices(Model(name="m", id="known-as"))
    monkeypatch.setenv("LLM_API_BASE", "https://b.example")
    with_prices(Model(name="m"))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://a.example")
    with_prices(Model(name="m"))
    with_prices(Model(name="m", base_url="https://c.example"))
    client = SimpleNamespace(with_options=print, base_url="https://d.example/v1/")
    with_prices(Model(name="m", client=client))
    assert asked == [
        ("known-as", None), ("m", "https://b.example"), ("m", "https://a.example"),
        ("m", "https://c.example"), ("m", "https://d.example/v1/"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://api.openai.com/v1", True),
        ("http://localhost:8000/v1", False),
        ("http://127.0.0.1:8000", False),
        ("http://node17/v1", False),
        ("http://[::1]:8000", False),
        ("", False),
    ],
)
def test_a_host_without_a_public_name_has_no_known_prices(url, public):
    assert _is_public(url) is public
    if not public:
        assert prices._listed("gpt-4o", url) is None


def test_the_data_know_a_model_by_its_maker_or_its_provider():
    pytest.importorskip("genai_prices")
    prices._listed.cache_clear()
    fields, filled = prices._listed("gpt-4o", None)
    assert fields["output_price"] > fields["input_price"] > 0
    assert filled.startswith("genai-prices ")
    assert "openai" in filled
    assert prices._listed("no-such-model-of-anybody", None) is None
