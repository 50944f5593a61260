"""From what people type to what is published: checked, compared, planned, packed and unpacked."""
