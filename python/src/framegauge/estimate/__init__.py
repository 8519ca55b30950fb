"""What a change would bring, from what was seen before it. Pure."""
