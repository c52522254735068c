"""Text and pictures of anything: layout, units, remarks, the console, files, and what pictures share."""
