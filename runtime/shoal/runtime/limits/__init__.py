"""What the machine allows a process of Shoal: open files, and memory."""
