"""What can go wrong. Every exception of this package is an :class:`MclvError`, and one of Python's own kinds beside."""


class MclvError(Exception):
    """Base of all exceptions of this package."""


class SettingError(MclvError, ValueError):
    """A setting lies outside what it may be."""


class DataError(MclvError, ValueError):
    """Data or parameters have the wrong shape or values."""


class FormatError(MclvError, ValueError):
    """A file does not follow its format, or nobody knows its format."""


class FileError(MclvError, OSError):
    """The operating system refused to read or write a file, or a data set cannot be had."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class ForbiddenFileError(FileError, PermissionError):
    """The file may not be read or written."""


class TooSlowError(MclvError, RuntimeError):
    """Exact enumeration would take longer than ``time_limit``."""


class UncertainWarning(UserWarning):
    """An estimate of log Z has no interval: its error is not known, or modes of the model may be missing from it."""
