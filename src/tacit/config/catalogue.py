"""Which methods and stages exist: every module of a room says what it offers, so nothing is registered twice.

A package outside Tacit offers a method through an entry point in the group ``tacit.methods``.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import tacit.methods
import tacit.protect
import tacit.transport
from tacit.errors import TacitError, nearest
from tacit.models.baselines import BASELINES, Baseline
from tacit.protect.protection import Protection
from tacit.round import Method
from tacit.settings import known_setting, settings_of
from tacit.transport.transport import Transport

Maker = Callable[..., Method]


def _modules(room: ModuleType) -> list[ModuleType]:
    names = [found.name for found in pkgutil.iter_modules(room.__path__)]
    return [importlib.import_module(f"{room.__name__}.{name}") for name in names]


class _Methods(Mapping[str, Maker]):
    """Every method by name; who asks for one loads that one's module alone, who lists them loads all."""

    def __getitem__(self, name: str) -> Maker:
        for module in _naming(tacit.methods, name):
            found = getattr(module, "METHODS", {})
            if name in found:
                return found[name]
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Maker]:
        found: dict[str, Maker] = {}
        for module in _modules(tacit.methods):
            found.update(getattr(module, "METHODS", {}))
        for entry in entry_points(group="tacit.methods"):
            found.setdefault(entry.name, _installed(entry))
        return found


def _naming(room: ModuleType, name: str) -> Iterator[ModuleType]:
    """The modules of a room in whose text a name is quoted; none where there is no text to look at."""
    for found in pkgutil.iter_modules(room.__path__):
        with suppress(OSError, UnicodeDecodeError):
            text = (Path(room.__path__[0]) / f"{found.name}.py").read_text(encoding="utf-8")
            if f'"{name}"' in text:
                yield importlib.import_module(f"{room.__name__}.{found.name}")


@cache
def methods() -> Mapping[str, Maker]:
    """Every federated method by name, built-in or installed.

    Example:
        >>> "fedrec++" in methods()
        True
    """
    return _Methods()


def _installed(entry: EntryPoint) -> Maker:
    """An outside package's method; one that cannot be loaded refuses when it is asked for, not before."""
    try:
        return entry.load()
    except Exception as error:  # whatever somebody else's module raises
        why = " ".join(f"{type(error).__name__}: {error}".split())

    def refused() -> Method:
        """Installed, but it cannot be loaded."""
        raise TacitError(
            f"the method {entry.name!r} ({entry.value}) cannot be loaded ({why})", "repair its package"
        )

    return refused


def presets(name: str) -> Mapping[str, Callable[[str, Mapping[str, Any]], Mapping[str, Any]]]:
    """The presets of a method: from the data set's name and the settings given to the preset's settings."""
    module = importlib.import_module(methods()[name].__module__)
    return getattr(module, "PRESETS", {})


def baselines() -> Mapping[str, Baseline]:
    """Every baseline by name: models that see all data in one place."""
    return BASELINES


def resolved_settings(name: str, given: Mapping[str, Any], data: str) -> dict[str, Any]:
    """A method's settings, complete: defaults, then the preset, then what was given.

    Text is parsed, values are checked; an unknown name is one clear line with the nearest one.
    """
    maker = methods()[name] if name in methods() else baselines()[name].fit
    parsed = {
        key: known_setting(maker, key, name).parsed(value)
        if isinstance(value, str)
        else known_setting(maker, key, name).checked(value)
        for key, value in given.items()
        if key != "preset"
    }
    chosen: Mapping[str, Any] = {}
    if "preset" in given:
        known = presets(name) if name in methods() else {}
        if given["preset"] not in known:
            raise TacitError(
                f"{name} has no preset {given['preset']!r}", nearest(str(given["preset"]), known)
            )
        chosen = known[given["preset"]](data, parsed)
    defaults = {key: setting.default for key, setting in settings_of(maker).items()}
    return {**defaults, **{key: value for key, value in chosen.items() if key in defaults}, **parsed}


def built(name: str, settings: Mapping[str, Any]) -> Method:
    """A method with these settings."""
    if name not in methods():
        raise TacitError(f"no method is called {name!r}", nearest(name, [*methods(), *baselines()]))
    return methods()[name](**settings)


def summary(function: Callable[..., Any]) -> str:
    """The first line of a docstring."""
    return (function.__doc__ or "").strip().splitlines()[0]


def _stage(spec: str, room: ModuleType, table: str, kind: str) -> Any:
    name, *arguments = spec.split(":")
    known: dict[str, Callable[..., Any]] = {}
    for module in _modules(room):
        known.update(getattr(module, table, {}))
    if name not in known:
        raise TacitError(f"no {kind} is called {name!r}", nearest(name, known))
    settings = settings_of(known[name])
    if len(arguments) > len(settings):
        raise TacitError(f"{kind} {spec!r} has too many parts", f"give {':'.join([name, *settings])}")
    values = {
        key: setting.parsed(text) for (key, setting), text in zip(settings.items(), arguments, strict=False)
    }
    return known[name](**values)


def protection(spec: str) -> Protection:
    """A protection from its text, such as ``grid:32``: the name, then its settings in order."""
    return _stage(spec, tacit.protect, "PROTECTIONS", "protection")


def transport(spec: str) -> Transport:
    """A transport from its text, such as ``direct``."""
    return _stage(spec, tacit.transport, "TRANSPORTS", "transport")
