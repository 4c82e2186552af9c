"""How large the data of a job may be, and what it may not hold."""

from __future__ import annotations

from tandemq.commands.table import UNDEFINED
from tandemq.model import body
from tandemq.model.errors import BadRequest
from tandemq.model.leaves import LEAST_PER_BYTE, json_length_over
from tandemq.model.message import Options

DATA_LIMIT = 10_485_760  # characters of the job's data as JSON
DATA_BYTES = int(DATA_LIMIT / LEAST_PER_BYTE)  # more of them are longer in any case
TOO_LARGE = "Job data too large (max 10MB)"


def check_data(data: bytes) -> None:
    """Check what user data may be.

    Raises:
        BadRequest
    """
    if body.holds_wide_integer(data):
        raise BadRequest("Job data must be JSON serializable")
    if json_length_over(data, DATA_LIMIT):
        raise BadRequest(TOO_LARGE)


def check_size(data: bytes, options: Options) -> None:
    """Check data against the limit that its own job sets, in bytes of JSON text; below 1 is none.

    Raises:
        BadRequest
    """
    limit = options.size_limit
    if limit is None or limit < 1 or data == UNDEFINED:
        return
    if json_length_over(data, int(limit), in_bytes=True):
        raise BadRequest(f"Job data too large (its sizeLimit is {body.number_text(limit)} bytes)")
