"""Bridges to frameworks; each module needs the packages of the framework that it is named for."""
