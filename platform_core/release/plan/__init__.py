"""What a change of a job means before anything happens: no change, a revision, or a replay; and what that costs."""
