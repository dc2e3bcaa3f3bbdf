"""Commands that come and go for an hour, and what the switchboard holds after each few minutes of them."""
