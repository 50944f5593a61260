"""What people define: projects, workflows, schedules, calendars, groups, secrets, backfills."""
