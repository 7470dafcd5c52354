"""The Lab page: experiments that show what training does. What it knows comes from the Session's `lab`."""
