"""Made from ``docs/openapi.json`` by ``make contract``; not for editing."""
