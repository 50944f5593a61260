"""Views: one request for what a page shows of many runs, each as long as what it shows."""
