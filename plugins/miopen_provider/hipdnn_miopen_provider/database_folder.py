"""Whether MIOpen can keep its user databases, without which it fails and says only "unknown error".

It makes lock files beside them, so it wants to write to the folder even where it would only read.
"""

from __future__ import annotations

import os
import tempfile

from hipdnn_miopen_provider.find_enforce import value_problem
from hipdnn_miopen_provider.native import MiopenError, NativeError
from hipdnn_miopen_provider.perf_db import USER_DB_VARIABLE, user_db_folder


def folder_problem() -> str:
    """Return what is wrong with the folder of MIOpen's user databases, or ''.

    Tries what MIOpen does: makes the folder, unless it is there, and a file in it.
    """
    folder = user_db_folder()
    doing = "made"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        doing = "written to"
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        if os.environ.get(USER_DB_VARIABLE):
            source = f"{USER_DB_VARIABLE}={os.environ[USER_DB_VARIABLE]}"
        else:
            source = f"{folder}, from HOME as {USER_DB_VARIABLE} is unset,"
        return (
            f"{source}, the folder of MIOpen's user databases, can't be {doing} "
            f"({error.strerror}): set {USER_DB_VARIABLE} to a folder that can"
        )


def explained(error: NativeError) -> str:
    """Return an error's text, with what is wrong around MIOpen if it may have raised it over that.

    It says "unknown error" of the folder, and of a MIOPEN_FIND_ENFORCE that it can't read.
    """
    problems = [folder_problem(), value_problem()] if isinstance(error, MiopenError) else []
    return "; ".join(filter(None, [str(error), *problems]))
