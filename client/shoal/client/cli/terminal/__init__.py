"""What all commands share: options, output, tables, colours."""
