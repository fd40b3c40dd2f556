"""The ways in which the emulator says no."""

from __future__ import annotations

from hipdnn_registry.errors import HipdnnError, InvalidInputError


class EmulatorError(HipdnnError):
    """Something is wrong that a person has to look at: never a reason to skip."""


class EmulatorUnavailableError(EmulatorError):
    """This machine can't fetch or build what the emulator is made of: a reason to skip."""


class UnknownTreeError(InvalidInputError):
    """There is no tree for the MIOpen version that was asked for."""


class UnsuitableSettingError(InvalidInputError):
    """A variable of the emulator, or the option for it, with a value that is not allowed."""


class UnsuitableCommandError(InvalidInputError):
    """A command that can't be started inside a tree; says why."""
