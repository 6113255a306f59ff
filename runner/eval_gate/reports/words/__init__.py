"""The sentences: verdict, grounds, blame, waivers, progress."""
