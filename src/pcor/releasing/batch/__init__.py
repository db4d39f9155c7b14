"""Many records at once: one run that can be killed anywhere and goes on where it was.

Private: the table, and when which draw was done. Public: the list of records, what they cost, and
the answers. Every draw is a ``pcor.release``, so it has that function's guarantee; what this
package adds is the order of things: charge, draw, store, for one record after the other.
"""

from pcor.releasing.batch.plan import ManyPlan, plan_many
from pcor.releasing.batch.results import Results
from pcor.releasing.batch.run import release_many

__all__ = ["ManyPlan", "Results", "plan_many", "release_many"]
