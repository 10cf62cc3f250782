"""The files of the throw-away repository in which the session is recorded.

Data only.  The package has four planted faults, which the first test runs show:
half cents are rounded to even, a second ``add`` of an article replaces the
quantity, tax is taken before the discount, and the price client does not use
its configuration.
"""

SEED: dict[str, str] = {}

SEED["README.md"] = """\
# shopcart

A small shopping cart: lines, discounts, tax, receipts.

    python -m pytest -q

Prices are `decimal.Decimal` in euro. Rounding rules are in `shopcart/rounding.py`.
The settings are read from `config.toml`.
"""

SEED[".gitignore"] = """\
__pycache__/
.pytest_cache/
"""

SEED["pyproject.toml"] = """\
[project]
name = "shopcart"
version = "0.3.0"
requires-python = ">=3.11"

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

SEED["config.toml"] = """\
# Settings of the shop. Read by shopcart.config.load_settings.

[server]
host = "prices.example.org"
port = 8443
timeout = 10
retries = 3

[pricing]
currency = "EUR"
tax_percent = "19"
bulk_quantity = 10
bulk_percent = "5"
"""

SEED["shopcart/__init__.py"] = '''\
"""A small shopping cart."""

from shopcart.cart import Cart, CartError, Line

__all__ = ["Cart", "CartError", "Line"]
'''

SEED["shopcart/cart.py"] = '''\
"""The cart: what a customer buys, and what it costs."""

from dataclasses import dataclass
from decimal import Decimal

from shopcart import pricing
from shopcart.config import Settings, load_settings


class CartError(ValueError):
    """The cart was asked for something that makes no sense."""


@dataclass(frozen=True)
class Line:
    """One article of the cart."""

    sku: str
    price: Decimal
    quantity: int


class Cart:
    """A cart of lines, with an optional coupon.

    Public API: add, remove, use_coupon, lines, count, subtotal, discount, tax, total.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or load_settings()
        self._lines: dict[str, Line] = {}
        self._coupon_percent = Decimal(0)

    def add(self, sku: str, price: Decimal, quantity: int = 1) -> None:
        """Put an article in the cart; adding it again adds to its quantity."""
        if quantity < 1:
            raise CartError(f"quantity must be at least 1, not {quantity}")
        if price < 0:
            raise CartError(f"price must not be negative, not {price}")
        self._lines[sku] = Line(sku, price, quantity)

    def remove(self, sku: str) -> None:
        """Take an article out of the cart."""
        if sku not in self._lines:
            raise CartError(f"no such article in the cart: {sku}")
        del self._lines[sku]

    def use_coupon(self, percent: Decimal) -> None:
        """Use a coupon which takes a percentage off the whole order."""
        if not 0 <= percent <= 100:
            raise CartError(f"a coupon is between 0 and 100 percent, not {percent}")
        self._coupon_percent = percent

    def lines(self) -> list[Line]:
        """The lines, in the order in which they were put in."""
        return list(self._lines.values())

    def count(self) -> int:
        """The number of pieces."""
        return sum(line.quantity for line in self._lines.values())

    def subtotal(self) -> Decimal:
        """The sum of all lines, before discounts and tax."""
        return sum((line.price * line.quantity for line in self.lines()), Decimal(0))

    def discount(self) -> Decimal:
        """What bulk lines and the coupon take off, in money."""
        bulk = sum(
            (pricing.bulk_discount(line.price, line.quantity, self._settings) for line in self.lines()),
            Decimal(0),
        )
        coupon = pricing.percent_of(self.subtotal() - bulk, self._coupon_percent)
        return bulk + coupon

    def tax(self) -> Decimal:
        """The tax on the order."""
        return pricing.tax_on(self.subtotal(), self._settings)

    def total(self) -> Decimal:
        """What the customer pays."""
        return self.subtotal() - self.discount() + self.tax()
'''

SEED["shopcart/pricing.py"] = '''\
"""Discounts, tax and rounding."""

from decimal import Decimal

from shopcart.config import Settings

CENT = Decimal("0.01")


def round_money(amount: Decimal) -> Decimal:
    """Round an amount to whole cents; half a cent is rounded up."""
    return amount.quantize(CENT)


def percent_of(amount: Decimal, percent: Decimal) -> Decimal:
    """A percentage of an amount, in whole cents."""
    return round_money(amount * percent / 100)


def bulk_discount(price: Decimal, quantity: int, settings: Settings) -> Decimal:
    """What is taken off a line with many pieces of one article."""
    if quantity < settings.bulk_quantity:
        return Decimal(0)
    return percent_of(price * quantity, settings.bulk_percent)


def tax_on(amount: Decimal, settings: Settings) -> Decimal:
    """The tax on an amount."""
    return percent_of(amount, settings.tax_percent)
'''

SEED["shopcart/config.py"] = '''\
"""Settings, read from config.toml."""

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

CONFIG_PATH = Path(__file__).parent.parent / "config.toml"


class ConfigError(ValueError):
    """The configuration file cannot be used."""


@dataclass(frozen=True)
class Settings:
    """All settings of the shop."""

    host: str
    port: int
    timeout: int
    retries: int
    currency: str
    tax_percent: Decimal
    bulk_quantity: int
    bulk_percent: Decimal


def load_settings(path: Path = CONFIG_PATH) -> Settings:
    """Read and check the configuration file."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        server, prices = data["server"], data["pricing"]
        settings = Settings(
            host=server["host"],
            port=int(server["port"]),
            timeout=int(server["timeout"]),
            retries=int(server["retries"]),
            currency=prices["currency"],
            tax_percent=Decimal(prices["tax_percent"]),
            bulk_quantity=int(prices["bulk_quantity"]),
            bulk_percent=Decimal(prices["bulk_percent"]),
        )
    except KeyError as exc:
        raise ConfigError(f"missing setting: {exc.args[0]}") from exc
    if settings.timeout < 1:
        raise ConfigError(f"timeout must be at least 1 second, not {settings.timeout}")
    return settings
'''

SEED["shopcart/client.py"] = '''\
"""The client of the price service (it opens no connection in the tests)."""

from shopcart.config import Settings, load_settings


class PriceClient:
    """Asks the price service for the price of an article."""

    def __init__(self, settings: Settings | None = None, timeout: int = 10) -> None:
        self.settings = settings or load_settings()
        self.timeout = timeout

    def url(self, sku: str) -> str:
        """Where the price of an article is found."""
        return f"https://{self.settings.host}:{self.settings.port}/price/{sku}"

    def deadline(self) -> int:
        """The longest time a price may take, all tries together."""
        return self.timeout * (1 + self.settings.retries)
'''

SEED["shopcart/receipt.py"] = '''\
"""Receipts as plain text."""

from decimal import Decimal

from shopcart.cart import Cart
from shopcart.pricing import round_money

WIDTH = 40


def _row(label: str, amount: Decimal) -> str:
    money = f"{round_money(amount):.2f}"
    return f"{label:<{WIDTH - len(money)}}{money}"


def receipt(cart: Cart) -> str:
    """The receipt of a cart; it ends with the amount to pay."""
    rows = [_row(f"{line.quantity} x {line.sku}", line.price * line.quantity) for line in cart.lines()]
    rows.append("-" * WIDTH)
    rows.append(_row("Subtotal", cart.subtotal()))
    if cart.discount():
        rows.append(_row("Discount", -cart.discount()))
    rows.append(_row("Tax", cart.tax()))
    rows.append(_row("Total", cart.total()))
    return "\\n".join(rows)
'''

SEED["tests/conftest.py"] = """\
from decimal import Decimal

import pytest

from shopcart.config import Settings


@pytest.fixture
def settings() -> Settings:
    return Settings(
        host="prices.example.org",
        port=8443,
        timeout=5,
        retries=3,
        currency="EUR",
        tax_percent=Decimal("19"),
        bulk_quantity=10,
        bulk_percent=Decimal("5"),
    )
"""

SEED["tests/test_cart.py"] = """\
from decimal import Decimal

import pytest

from shopcart import Cart, CartError


def test_empty_cart_costs_nothing(settings):
    cart = Cart(settings)
    assert cart.count() == 0
    assert cart.total() == 0


def test_subtotal_adds_lines(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"), 2)
    cart.add("mug", Decimal("7.99"))
    assert cart.subtotal() == Decimal("16.39")


def test_adding_again_adds_to_the_quantity(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"), 2)
    cart.add("tea", Decimal("4.20"), 3)
    assert cart.count() == 5
    assert cart.subtotal() == Decimal("21.00")


def test_remove(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"))
    cart.remove("tea")
    assert cart.lines() == []


def test_remove_unknown_article(settings):
    with pytest.raises(CartError, match="no such article"):
        Cart(settings).remove("tea")


def test_quantity_must_be_positive(settings):
    with pytest.raises(CartError):
        Cart(settings).add("tea", Decimal("4.20"), 0)


def test_tax_is_on_the_discounted_amount(settings):
    cart = Cart(settings)
    cart.add("desk", Decimal("200.00"))
    cart.use_coupon(Decimal("10"))
    assert cart.discount() == Decimal("20.00")
    assert cart.tax() == Decimal("34.20")
    assert cart.total() == Decimal("214.20")


def test_bulk_and_coupon_together(settings):
    cart = Cart(settings)
    cart.add("pen", Decimal("1.49"), 10)
    cart.use_coupon(Decimal("10"))
    assert cart.discount() == Decimal("2.17")
    assert cart.total() == Decimal("15.15")


def test_total_without_discount(settings):
    cart = Cart(settings)
    cart.add("mug", Decimal("7.99"))
    assert cart.total() == Decimal("9.51")
"""

SEED["tests/test_pricing.py"] = """\
from decimal import Decimal

import pytest

from shopcart import pricing


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("2.664", "2.66"),
        ("2.666", "2.67"),
        ("2.665", "2.67"),
        ("1.005", "1.01"),
        ("0.125", "0.13"),
        ("2.675", "2.68"),
    ],
)
def test_half_cent_is_rounded_up(amount, expected):
    assert pricing.round_money(Decimal(amount)) == Decimal(expected)


def test_round_money_keeps_decimal():
    assert isinstance(pricing.round_money(Decimal("1.5")), Decimal)


def test_percent_of():
    assert pricing.percent_of(Decimal("19.90"), Decimal("15")) == Decimal("2.99")


def test_no_bulk_discount_below_the_limit(settings):
    assert pricing.bulk_discount(Decimal("1.49"), 9, settings) == 0


def test_bulk_discount_at_the_limit(settings):
    assert pricing.bulk_discount(Decimal("1.49"), 10, settings) == Decimal("0.75")


def test_tax_on(settings):
    assert pricing.tax_on(Decimal("12.50"), settings) == Decimal("2.38")
"""

SEED["tests/test_config.py"] = """\
import pytest

from shopcart.config import ConfigError, load_settings


def test_the_shipped_config_can_be_read():
    settings = load_settings()
    assert settings.currency == "EUR"
    assert settings.retries == 3


def test_missing_setting(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[server]\\nhost = 'a'\\n[pricing]\\n")
    with pytest.raises(ConfigError, match="port"):
        load_settings(path)
"""

SEED["tests/test_receipt.py"] = """\
from decimal import Decimal

from shopcart import Cart
from shopcart.receipt import WIDTH, receipt


def test_receipt_rows_have_one_width(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"), 2)
    assert {len(row) for row in receipt(cart).splitlines()} == {WIDTH}


def test_receipt_ends_with_the_total(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"), 2)
    cart.add("tea", Decimal("4.20"), 1)
    assert receipt(cart).splitlines()[-1].split() == ["Total", "14.99"]


def test_discount_row_only_with_a_discount(settings):
    cart = Cart(settings)
    cart.add("tea", Decimal("4.20"))
    assert "Discount" not in receipt(cart)
    cart.use_coupon(Decimal("50"))
    assert "Discount" in receipt(cart)
"""
