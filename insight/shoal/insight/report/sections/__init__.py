"""The sections of a report: a heading, a sentence that says what there is to see, and its body."""
