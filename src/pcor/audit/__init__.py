"""Looking at ourselves: what a release gives away, computed. For the owner only."""

from pcor.audit.exact import exact_distribution, exact_log_chances, largest_log_ratio
from pcor.audit.exposure import exposure, exposures
from pcor.audit.fact_answers import exact_answers
from pcor.audit.joint import JointExposure, JointlyExposed, joint_delta, joint_exposure
from pcor.audit.match import Match, coe_match, group_delta, group_epsilon
from pcor.audit.neighbours import Neighbour, insertions, removals
from pcor.audit.report import Exposed, ExposedRow, Exposure
from pcor.audit.sampled import SampledEpsilon, answers, sampled_epsilon
from pcor.audit.schema_draft import SchemaDraft
from pcor.audit.schema_draft import draft as draft_schema
from pcor.audit.schema_fit import Misfit

__all__ = [
    "Exposed",
    "ExposedRow",
    "Exposure",
    "JointExposure",
    "JointlyExposed",
    "Match",
    "Misfit",
    "Neighbour",
    "SampledEpsilon",
    "SchemaDraft",
    "answers",
    "coe_match",
    "draft_schema",
    "exact_answers",
    "exact_distribution",
    "exact_log_chances",
    "exposure",
    "exposures",
    "group_delta",
    "group_epsilon",
    "insertions",
    "joint_delta",
    "joint_exposure",
    "largest_log_ratio",
    "removals",
    "sampled_epsilon",
]
