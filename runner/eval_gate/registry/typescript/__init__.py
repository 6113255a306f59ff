"""Tool definitions in TypeScript and JavaScript, parsed and never run."""
