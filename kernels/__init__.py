"""What is computed, and nothing else: no allocation, launch or binding."""
