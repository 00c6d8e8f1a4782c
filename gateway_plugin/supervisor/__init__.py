"""The process that starts, watches, restarts and stops the processes of one machine."""
