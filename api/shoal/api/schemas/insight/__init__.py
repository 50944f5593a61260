"""What results of the jobs over the history look like in answers."""
