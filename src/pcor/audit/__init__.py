"""Looking at ourselves: what a release gives away, computed. For the owner only."""

from pcor.audit.exact import exact_distribution, exact_log_chances, largest_log_ratio

__all__ = ["exact_distribution", "exact_log_chances", "largest_log_ratio"]
