"""Synthetic data, the same on every machine. Nobody in it exists.

``paper`` has tables of the paper's shape: 51,000 salaries, and the ten people of its Table 1.
``insurer`` has the motor claims of the tutorial's story, raw as they leave a claims system, and
``export`` the same claims as another system writes them, with every rough edge. ``hospital`` has
stays of patients, some of whom came several times.
"""

from pcor.demo.export import EXPORT_ENCODING, claims_export
from pcor.demo.hospital import STAY, stays, stays_schema, stays_table
from pcor.demo.insurer import (
    CLAIM,
    CLAIM_AMOUNT,
    claims,
    claims_context,
    claims_csv,
    claims_schema,
    claims_table,
)
from pcor.demo.paper import (
    PLANTED,
    ROWS,
    Planted,
    salaries,
    salary_schema,
    salary_table,
    ten_people,
    ten_people_schema,
)

__all__ = [
    "CLAIM",
    "CLAIM_AMOUNT",
    "EXPORT_ENCODING",
    "PLANTED",
    "ROWS",
    "STAY",
    "Planted",
    "claims",
    "claims_context",
    "claims_csv",
    "claims_export",
    "claims_schema",
    "claims_table",
    "salaries",
    "salary_schema",
    "salary_table",
    "stays",
    "stays_schema",
    "stays_table",
    "ten_people",
    "ten_people_schema",
]
