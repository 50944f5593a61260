"""What views over results of run history take, with many workflows and weeks of days."""
