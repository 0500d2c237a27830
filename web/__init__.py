"""What a person looks at: pages, each one file that takes nothing from elsewhere.

What was recorded comes from models and strangers: a page writes it as text and never as markup, and its policy lets
nothing run but the page's own script.
"""

from .page import Page, load_page

__all__ = ["Page", "load_page"]
