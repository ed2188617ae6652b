"""Exceptions. Each is an :class:`MclvError` and also one of Python's built-in exceptions."""


class MclvError(Exception):
    """Base of all exceptions of this package."""


class SettingError(MclvError, ValueError):
    """A setting has a value that is not allowed."""


class DataError(MclvError, ValueError):
    """Data or parameters have the wrong shape or values."""


class FormatError(MclvError, ValueError):
    """A file does not follow its format, or its format is unknown."""


class FileError(MclvError, OSError):
    """A file cannot be read or written, or a data set cannot be downloaded."""


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


class ForbiddenFileError(FileError, PermissionError):
    """The file may not be read or written."""


class TooSlowError(MclvError, RuntimeError):
    """Exact enumeration would take longer than ``time_limit``."""


class UncertainWarning(UserWarning):
    """An estimate of log Z has no interval, or samples may depend on where chains began.

    Then an error is unknown, or modes may be missing.
    """
