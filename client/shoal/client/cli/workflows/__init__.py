"""Commands about what is published: workflows, schedules, calendars, values of projects."""
