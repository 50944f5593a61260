"""The workflows that compute roll-ups; ``shoal insight setup`` publishes them."""
