"""The user's own hosts: facts about them, routes between them, and the changes that a study would make."""
