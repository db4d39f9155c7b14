"""The experiments of the paper, each table and figure again. NOT PRIVATE: seeded, and for owners.

Private: everything. The experiments read rows and print what a release must not say: utilities,
counts, times. They are for tables that anybody may look at, or for the owner's own eyes.

``published`` holds the paper's numbers; ``tables`` and ``subjects`` say what is measured on,
``ways`` and ``measurement`` how; ``units`` divides the work and ``store`` keeps what was measured;
``experiment`` says what all of them share, ``comparisons`` and one module for each other experiment
what it compares; ``catalogue`` lists them.
"""
